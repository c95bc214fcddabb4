// POST /completion and /infill, as llama-server has them beside OpenAI's API: what a request says,
// and how its answers are shown. Pure.
#pragma once

#include <troupe/request.h>

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "base/status.h"
#include "server/answer_format.h"
#include "server/openai_values.h"

namespace troupe {

struct LlamaCall {
  std::vector<Prompt> prompts;  // an answer for each
  bool is_list = false;         // the prompt was one, and so is the answer
  Request request;              // all else of each of them
  OpenAiCall call;              // of which n stays 1
  bool tells_tokens = false;    // of whole answers
};

enum class LlamaKind { kText, kGap };

// `defaults`: of a request that says nothing, its seed drawn; max_tokens, if it says none.
Result<LlamaCall> ReadLlamaCall(std::string_view body, LlamaKind kind, const Request& defaults);

struct LlamaHead {
  std::string model;
  std::uint64_t seed = 0;
};

std::unique_ptr<AnswerFormat> MakeLlamaFormat(const LlamaCall& call, LlamaHead head);

}  // namespace troupe
