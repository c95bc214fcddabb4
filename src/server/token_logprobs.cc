#include "server/token_logprobs.h"

#include <algorithm>
#include <cmath>
#include <numeric>

namespace troupe {

std::size_t BytesOfLogprob(const TokenLogprob& token, std::size_t each) {
  constexpr std::size_t kUsual = 4, kEscaped = 4;  // bytes of a token, and of each of them in JSON
  const auto bytes = [each](const std::string& text) {
    return each - std::min(each, kUsual * kEscaped) + text.size() * kEscaped;
  };
  std::size_t all = bytes(token.text);
  for (const TokenLogprob::Other& other : token.top) all += bytes(other.text);
  return all;
}

std::size_t BytesOfAnswers(std::span<const ChoiceAnswer> choices, std::size_t each) {
  constexpr std::size_t kBeside = 1024;
  std::size_t all = kBeside;
  for (const ChoiceAnswer& choice : choices) {
    all += kBeside + choice.answer.text.size();
    for (const TokenLogprob& token : choice.tokens) all += BytesOfLogprob(token, each);
    for (const TokenLogprob& token : choice.prompt) all += BytesOfLogprob(token, each);
  }
  return all;
}

TokenLogprob LogprobOf(const Tokenizer& tokenizer, TokenId token, std::span<const float> logits,
                       std::size_t others) {
  const double largest = *std::ranges::max_element(logits);
  double sum = 0;
  for (const float logit : logits) sum += std::exp(static_cast<double>(logit) - largest);
  const double all = largest + std::log(sum);
  const auto logprob = [&](TokenId id) {
    return static_cast<double>(logits[static_cast<std::size_t>(id)]) - all;
  };
  TokenLogprob told{
      .text = std::string(tokenizer.TokenBytes(token)), .logprob = logprob(token), .top = {}};
  std::vector<TokenId> ids(logits.size());
  std::iota(ids.begin(), ids.end(), 0);
  const std::size_t most = std::min(others, ids.size());
  std::ranges::partial_sort(
      ids, ids.begin() + static_cast<std::ptrdiff_t>(most), {},
      [&](TokenId id) { return std::pair(-logits[static_cast<std::size_t>(id)], id); });
  told.top.reserve(most);
  for (std::size_t i = 0; i < most; ++i) {
    told.top.push_back(
        {.text = std::string(tokenizer.TokenBytes(ids[i])), .logprob = logprob(ids[i])});
  }
  return told;
}

}  // namespace troupe
