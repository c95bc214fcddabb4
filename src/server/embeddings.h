// POST /v1/embeddings: what a request says, and how its vectors are shown. Pure.
#pragma once

#include <troupe/request.h>

#include <cstddef>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "base/status.h"
#include "server/answer_format.h"
#include "server/job_requests.h"

namespace troupe {

struct EmbeddingsCall {
  std::vector<Prompt> inputs;  // a vector for each
  bool base64 = false;         // of little-endian floats; otherwise numbers
};

// `width`: of the model's vectors.
Result<EmbeddingsCall> ReadEmbeddingsCall(std::string_view body, std::size_t width);

// kInvalidArgument: the answer would be longer than a server keeps for one client.
Status CheckSize(const EmbeddingsCall& call, std::size_t width);

// A request for each input, with its tokens, which `encode` makes of a text: here and not when the
// request starts, as most of a long array are started by the engine's thread, for which other
// requests wait. kResourceExhausted: an input has more tokens than the context holds.
using EncodeInput = std::function<Result<std::vector<TokenId>>(const Prompt& input)>;
Result<JobRequests> EmbeddingRequests(EmbeddingsCall call, Pooling pooling, std::size_t context,
                                      const EncodeInput& encode);

// Its vectors are the answers' embeddings, in the order of the inputs.
std::unique_ptr<AnswerFormat> MakeEmbeddingsFormat(const EmbeddingsCall& call, std::string model);

}  // namespace troupe
