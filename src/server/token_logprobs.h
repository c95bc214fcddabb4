// The probability of a token among all, and the most likely others, from the logits that it was
// chosen from: before temperature and the other options of sampling.
#pragma once

#include <span>

#include "server/answer_format.h"
#include "text/tokenizer.h"

namespace troupe {

TokenLogprob LogprobOf(const Tokenizer& tokenizer, TokenId token, std::span<const float> logits,
                       std::size_t others);

}  // namespace troupe
