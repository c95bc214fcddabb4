#include "expert/cache/arc.h"

#include <algorithm>

namespace troupe {

Arc::Arc(ExpertGrid grid, std::vector<std::uint32_t> capacities)
    : grid_(grid),
      lists_(capacities.size()),
      entries_(grid.Count()),
      missed_in_b2_(capacities.size()) {
  TROUPE_CHECK(capacities.size() == 1 || capacities.size() == grid.layers);
  for (std::size_t i = 0; i < capacities.size(); ++i) lists_[i].capacity = capacities[i];
}

void Arc::Move(ExpertId id, Where to) {
  Entry& entry = At(id);
  Lists& lists = lists_[ListsOf(id.layer)];
  if (entry.where != kNowhere && to != kNowhere) {
    lists.of[to].splice(lists.of[to].begin(), lists.of[entry.where], entry.at);
  } else if (entry.where != kNowhere) {
    lists.of[entry.where].erase(entry.at);
  } else if (to != kNowhere) {
    lists.of[to].push_front(id);
    entry.at = lists.of[to].begin();
  }
  entry.where = to;
}

void Arc::HitGhost(std::size_t index, Where ghost, double b1, double b2) {
  Lists& lists = lists_[index];
  if (ghost == kB1) {
    lists.target = std::min<double>(lists.capacity, lists.target + std::max(1.0, b2 / b1));
  } else {
    lists.target = std::max(0.0, lists.target - std::max(1.0, b1 / b2));
  }
  missed_in_b2_[index] = ghost == kB2;
}

void Arc::OnAsked(ExpertId id, std::span<const Asker>) {
  Entry& entry = At(id);
  const std::size_t index = ListsOf(id.layer);
  const Lists& lists = lists_[index];
  const auto b1 = static_cast<double>(lists.of[kB1].size());
  const auto b2 = static_cast<double>(lists.of[kB2].size());
  switch (entry.where) {
    case kT1:
      if (entry.asked) {
        Move(id, kT2);
      } else if (entry.came_from == kNowhere) {
        Move(id, kT1);  // loaded ahead: seen for the first time now
      } else {
        // Loaded ahead out of a ghost, which it would be in yet.
        HitGhost(index, entry.came_from, b1 + (entry.came_from == kB1 ? 1 : 0),
                 b2 + (entry.came_from == kB2 ? 1 : 0));
        Move(id, kT2);
      }
      break;
    case kT2:
      Move(id, kT2);
      break;
    case kB1:
    case kB2:
      HitGhost(index, entry.where, b1, b2);
      entry.returns_to_t2 = true;
      break;
    case kNowhere:
      missed_in_b2_[index] = false;
      break;
  }
  entry.asked = true;
  entry.came_from = kNowhere;
}

void Arc::OnAdmitted(ExpertId id) {
  Entry& entry = At(id);
  if (!entry.returns_to_t2) entry.came_from = entry.where;
  Move(id, entry.returns_to_t2 ? kT2 : kT1);
  entry.returns_to_t2 = false;
  TrimGhosts(lists_[ListsOf(id.layer)]);
}

void Arc::OnEvicted(ExpertId id) {
  Entry& entry = At(id);
  // One that nobody asked for says nothing about what is used again: a ghost is a ghost again,
  // though the latest of them.
  Move(id, !entry.asked ? entry.came_from : entry.where == kT1 ? kB1 : kB2);
  entry.asked = false;
  entry.came_from = kNowhere;
  TrimGhosts(lists_[ListsOf(id.layer)]);
}

// Asked for while it was on its way, and to be loaded once more: what was asked counts.
void Arc::OnAbandoned(ExpertId id) {
  Entry& entry = At(id);
  if (!entry.asked) {
    OnEvicted(id);
    return;
  }
  entry.returns_to_t2 = entry.where == kT2;
  Move(id, kNowhere);
}

void Arc::TrimGhosts(Lists& lists) {
  // |T1| + |B1| <= c and all four together <= 2c.
  const auto drop = [&](Where where) { Move(lists.of[where].back(), kNowhere); };
  const auto size = [&](Where where) { return lists.of[where].size(); };
  while (size(kB1) > 0 && size(kT1) + size(kB1) > lists.capacity) drop(kB1);
  while (size(kB2) > 0 &&
         size(kT1) + size(kT2) + size(kB1) + size(kB2) > 2 * std::size_t{lists.capacity}) {
    drop(kB2);
  }
}

template <typename MayGo>
const ExpertId* Arc::Oldest(const List& list, const MayGo& may_go) {
  for (auto id = list.rbegin(); id != list.rend(); ++id) {
    if (may_go(*id)) return &*id;
  }
  return nullptr;
}

bool Arc::TakesFromT1(std::size_t index) const {
  const Lists& lists = lists_[index];
  const auto t1 = static_cast<double>(lists.of[kT1].size());
  return t1 >= 1 && (t1 > lists.target || (missed_in_b2_[index] && t1 == lists.target));
}

template <typename MayGo>
const ExpertId* Arc::Replace(std::size_t index, const MayGo& may_go) const {
  const Lists& lists = lists_[index];
  const bool from_t1 = TakesFromT1(index);
  const ExpertId* chosen = Oldest(lists.of[from_t1 ? kT1 : kT2], may_go);
  return chosen != nullptr ? chosen : Oldest(lists.of[from_t1 ? kT2 : kT1], may_go);
}

std::size_t Arc::Choose(std::span<const ExpertId> candidates) {
  const auto is_candidate = [candidates](ExpertId id) {
    return std::ranges::find(candidates, id) != candidates.end();
  };
  // With quotas candidates are of one layer, but a layer with nothing may take from all: then the
  // first candidate's lists decide, and others are considered only if those have none.
  for (const ExpertId& first : candidates) {
    const ExpertId* chosen = Replace(ListsOf(first.layer), is_candidate);
    if (chosen == nullptr) continue;
    return static_cast<std::size_t>(std::ranges::find(candidates, *chosen) - candidates.begin());
  }
  TROUPE_CHECK(!"every candidate is in T1 or T2");
  return 0;
}

std::optional<ExpertId> Arc::FirstToGo(std::optional<std::uint32_t> layer,
                                       std::span<const std::uint8_t> evictable) {
  const auto may_go = [&](ExpertId id) {
    return evictable[grid_.Index(id)] != 0 && (!layer || id.layer == *layer);
  };
  const std::size_t first = layer ? ListsOf(*layer) : 0;
  const std::size_t last = layer ? first + 1 : lists_.size();
  for (std::size_t index = first; index < last; ++index) {
    if (const ExpertId* chosen = Replace(index, may_go)) return *chosen;
  }
  return std::nullopt;
}

}  // namespace troupe
