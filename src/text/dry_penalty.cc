#include "text/dry_penalty.h"

#include <algorithm>
#include <string_view>

namespace troupe {
namespace {

// Of each place of `text` the number of tokens from there on that are the text's first ones.
std::vector<std::size_t> CommonBeginnings(std::span<const TokenId> text) {
  std::vector<std::size_t> common(text.size(), 0);
  std::size_t begin = 0, end = 0;  // the stretch known to be alike that ends last
  for (std::size_t i = 1; i < text.size(); ++i) {
    if (i < end) common[i] = std::min(end - i, common[i - begin]);
    while (i + common[i] < text.size() && text[common[i]] == text[i + common[i]]) ++common[i];
    if (i + common[i] > end) begin = i, end = i + common[i];
  }
  return common;
}

}  // namespace

std::vector<std::string> UsualBreakers() { return {"\n", ":", "\"", "*"}; }

void DryPenalty::Accept(TokenId token) {
  const std::size_t most = options_.window;
  if (most > 0 && text_.size() >= 2 * most) {
    text_.erase(text_.begin(), text_.end() - static_cast<std::ptrdiff_t>(most));
  }
  text_.push_back(token);
}

double DryPenalty::PenaltyOf(std::size_t repeated) const {
  constexpr double kLikeABan = 1e30;
  double penalty = options_.multiplier;
  for (std::size_t i = options_.allowed_length; i < repeated && penalty < kLikeABan; ++i) {
    penalty *= options_.base;
  }
  return std::min(penalty, kLikeABan);
}

std::unordered_map<TokenId, float> DryPenalty::Penalties() const {
  const std::size_t window = options_.window == 0 ? text_.size() : options_.window;
  const std::size_t seen = std::min(window, text_.size());
  // Backwards, so that what ends like the text begins like it.
  const std::vector<TokenId> back(text_.rbegin(),
                                  text_.rbegin() + static_cast<std::ptrdiff_t>(seen));
  const auto breaker =
      std::ranges::find_if(back, [this](TokenId token) { return breakers_.Has(token); });
  const auto unbroken = static_cast<std::size_t>(breaker - back.begin());
  const std::vector<std::size_t> common = CommonBeginnings(back);
  std::unordered_map<TokenId, std::size_t> longest;  // repetition that the token would go on with
  for (std::size_t i = 1; i < seen; ++i) {
    const std::size_t repeated = std::min(common[i], unbroken);
    if (repeated < std::max<std::size_t>(1, options_.allowed_length)) continue;
    if (breakers_.Has(back[i - 1])) continue;
    std::size_t& known = longest[back[i - 1]];
    known = std::max(known, repeated);
  }
  std::unordered_map<TokenId, float> penalties;
  for (const auto& [token, repeated] : longest) {
    penalties[token] = static_cast<float>(PenaltyOf(repeated));
  }
  return penalties;
}

TokenSet TokensWith(const Tokenizer& tokenizer, std::span<const std::string> texts) {
  TokenSet found(tokenizer.size());
  for (std::size_t i = 0; i < tokenizer.size(); ++i) {
    const auto id = static_cast<TokenId>(i);
    const std::string_view bytes = tokenizer.TokenBytes(id);
    const bool has = std::ranges::any_of(texts, [bytes](const std::string& text) {
      return !text.empty() && bytes.find(text) != bytes.npos;
    });
    if (has) found.Insert(id);
  }
  return found;
}

}  // namespace troupe
