// What an end asks of a cloud: an answer, or the rest of one, to a prompt of token ids. All of a
// Request that decides its bytes is there. Pure. The format is docs/formats/end-cloud.md's.
#pragma once

#include <troupe/request.h>

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "base/json_value.h"
#include "base/status.h"
#include "split/wire/cut_ask.h"
#include "split/wire/model_proof.h"

namespace troupe {

struct CloudRequest {
  ModelProof proof;
  Request request;  // its prompt is token ids; always answered exactly
  // By which drafts for it come (draft_offer.h); absent: none will.
  std::optional<std::uint64_t> drafts = {};
  // The end computes the first layers of its prompt, whose rows come beside; absent: it does not.
  std::optional<CutAsk> cut = {};
};

// That who answers it has to read, whatever a cache may have of it.
std::size_t PromptTokensOf(const Request& request);

std::string Encode(const CloudRequest& request);
// Under ReadJson or ReadBody (base/json_value.h), which say what is wrong with the text.
CloudRequest ReadCloudRequest(const JsonValue& json);

}  // namespace troupe
