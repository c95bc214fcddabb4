#include "server/token_logprobs.h"

#include <algorithm>
#include <cmath>

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

std::vector<TokenId> MostLikely(std::span<const float> logits, std::size_t most) {
  const auto logit = [&](TokenId id) { return logits[static_cast<std::size_t>(id)]; };
  const auto is_better = [&](TokenId a, TokenId b) {
    return logit(a) > logit(b) || (logit(a) == logit(b) && a < b);
  };
  std::vector<TokenId> best;  // a heap whose first is the least of them
  const std::size_t kept = std::min(most, logits.size());
  best.reserve(kept);
  for (TokenId id = 0; best.size() < kept; ++id) {
    best.push_back(id);
    std::ranges::push_heap(best, is_better);
  }
  for (std::size_t i = kept; kept > 0 && i < logits.size(); ++i) {
    if (logits[i] <= logit(best.front())) continue;
    std::ranges::pop_heap(best, is_better);
    best.back() = static_cast<TokenId>(i);
    std::ranges::push_heap(best, is_better);
  }
  std::ranges::sort_heap(best, is_better);
  return best;
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
  told.top.reserve(others);
  for (const TokenId id : MostLikely(logits, others)) {
    told.top.push_back({.text = std::string(tokenizer.TokenBytes(id)), .logprob = logprob(id)});
  }
  return told;
}

}  // namespace troupe
