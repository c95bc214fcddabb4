#include "text/first_message.h"

#include <algorithm>

namespace troupe {
namespace {

// What begins an answer has few tokens: "<|im_start|>assistant\n<think>\n\n</think>\n\n".
constexpr std::size_t kLongestOpening = 16;

bool IsMark(TokenId token, const Tokenizer& tokenizer) {
  return tokenizer.Contains(token) && tokenizer.IsSpecial(token);
}

}  // namespace

std::size_t EndOfFirstMessage(std::span<const TokenId> prompt, const Tokenizer& tokenizer) {
  const std::size_t least = prompt.size() - std::min(prompt.size(), kLongestOpening);
  for (std::size_t last = prompt.size(); last > least; --last) {
    const TokenId mark = prompt[last - 1];
    if (!IsMark(mark, tokenizer)) continue;
    // The first message, the second one, and the answer begin with it.
    const auto first = std::ranges::find(prompt, mark);
    const auto second = std::find(first + 1, prompt.end(), mark);
    const auto end = static_cast<std::size_t>(second - prompt.begin());
    if (end + 1 < last) return end;
  }
  return 0;
}

}  // namespace troupe
