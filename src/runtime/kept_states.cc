#include "runtime/kept_states.h"

#include <algorithm>
#include <utility>

#include "base/check.h"

namespace troupe {

bool KeptStates::Touch(TokenIds tokens, std::string_view salt) {
  const auto same = std::ranges::find_if(kept_, [&](const Kept& kept) {
    return kept.salt == salt && std::ranges::equal(kept.tokens, tokens);
  });
  if (same == kept_.end()) return false;
  same->used = ++clock_;
  return true;
}

void KeptStates::Keep(TokenIds tokens, SavedState state, std::string_view salt) {
  TROUPE_CHECK(state.length() == tokens.size());
  if (tokens.empty() || Touch(tokens, salt)) return;
  kept_.push_back({.tokens = {tokens.begin(), tokens.end()},
                   .salt = std::string(salt),
                   .state = std::move(state),
                   .used = ++clock_});
  ++counters_.kept;
}

const SavedState* KeptStates::Find(TokenIds tokens, std::string_view salt) {
  Kept* furthest = nullptr;
  for (Kept& kept : kept_) {
    if (kept.salt != salt || kept.tokens.size() > tokens.size()) continue;
    if (furthest != nullptr && furthest->tokens.size() >= kept.tokens.size()) continue;
    if (std::ranges::equal(kept.tokens, tokens.first(kept.tokens.size()))) furthest = &kept;
  }
  if (furthest == nullptr) return nullptr;
  furthest->used = ++clock_;
  ++counters_.found;
  return &furthest->state;
}

std::vector<KeptStates::Entry> KeptStates::All() const {
  std::vector<const Kept*> order;
  for (const Kept& kept : kept_) {
    if (kept.salt.empty()) order.push_back(&kept);
  }
  std::ranges::sort(order, {}, &Kept::used);
  std::vector<Entry> all;
  for (const Kept* kept : order) all.push_back({.tokens = kept->tokens, .state = &kept->state});
  return all;
}

std::size_t KeptStates::GiveUp(std::size_t places) {
  std::size_t given = 0;
  for (; given < places && !kept_.empty(); ++given) {
    kept_.erase(std::ranges::min_element(kept_, {}, &Kept::used));
    ++counters_.given_up;
  }
  return given;
}

}  // namespace troupe
