// The probability of a token among all, and the most likely others, from the logits that it was
// chosen from: before temperature and the other options of sampling.
#pragma once

#include <cstddef>
#include <span>
#include <vector>

#include "server/answer_format.h"
#include "text/tokenizer.h"

namespace troupe {

// What one of these tokens, or of the likely others, mostly takes as text of an API.
inline constexpr std::size_t kChatLogprobBytes = 80, kCompletionLogprobBytes = 40,
                             kLlamaLogprobBytes = 60;
// What they take, and answers with them, by such a number: a little more than that, most often.
std::size_t BytesOfLogprob(const TokenLogprob& token, std::size_t each);
std::size_t BytesOfAnswers(std::span<const ChoiceAnswer> choices, std::size_t each);

// As many as that, best first; of equal ones the lower id.
std::vector<TokenId> MostLikely(std::span<const float> logits, std::size_t most);

TokenLogprob LogprobOf(const Tokenizer& tokenizer, TokenId token, std::span<const float> logits,
                       std::size_t others);

}  // namespace troupe
