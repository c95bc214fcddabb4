#include "server/token_logprobs.h"

#include <algorithm>
#include <cmath>
#include <numeric>

namespace troupe {

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
  for (std::size_t i = 0; i < most; ++i) {
    told.top.push_back(
        {.text = std::string(tokenizer.TokenBytes(ids[i])), .logprob = logprob(ids[i])});
  }
  return told;
}

}  // namespace troupe
