// How long an answer that is not streamed may become, found before any of it is computed: it is
// held until its end, and one that is too long to be sent would have been computed in vain. Pure.
#pragma once

#include <cstddef>
#include <optional>

#include "base/bytes.h"
#include "base/status.h"

namespace troupe {

// Of the 11 MiB that clients have together for what they have not read.
inline constexpr std::size_t kMostAnswerBytes = 4 << 20;

struct AnswerShape {
  std::size_t prompts = 1, n = 1;       // answers of each prompt
  std::size_t tokens = 0;               // of an answer, at most
  bool tokens_are_asked_for = true;     // and not what there is room for
  std::size_t prompt_tokens = 0;        // that are told of
  std::optional<std::size_t> logprobs;  // other likely tokens told beside each; absent: none
  std::size_t logprob_bytes = 0;        // that one of these takes

  std::size_t BytesOfToken() const;
  std::size_t Bytes() const;
};

// How many tokens each answer may have. If the request names no number, this is what fits; if it
// names one that does not fit, kInvalidArgument names the field to make smaller.
Result<std::size_t> TokensThatFit(const AnswerShape& shape);

}  // namespace troupe
