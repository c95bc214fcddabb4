#include "expert/cache/lru.h"

#include <algorithm>
#include <numeric>

namespace troupe {

void Lru::Rings::Reset(std::size_t nodes) {
  next.resize(nodes);
  std::iota(next.begin(), next.end(), Node{0});  // each alone
  previous = next;
}

void Lru::Rings::InsertAfter(Node at, Node node) {
  previous[node] = at;
  next[node] = next[at];
  previous[next[at]] = node;
  next[at] = node;
}

void Lru::Rings::Remove(Node node) {
  next[previous[node]] = next[node];
  previous[next[node]] = previous[node];
}

Lru::Lru(ExpertGrid grid) : grid_(grid), last_asked_(grid.Count()), held_(grid.Count()) {
  of_layer_.Reset(grid.Count() + grid.layers);
  of_all_.Reset(grid.Count() + 1);
}

bool Lru::Before(Node a, Node b) const {
  return std::pair(last_asked_[a], a) < std::pair(last_asked_[b], b);
}

// The newest are at the end, and what comes in was nearly always asked for just now.
void Lru::Insert(Rings& rings, Node head, Node node) {
  Node at = rings.previous[head];
  while (at != head && Before(node, at)) at = rings.previous[at];
  rings.InsertAfter(at, node);
}

void Lru::OnAsked(ExpertId id, std::span<const Asker>) {
  const auto node = static_cast<Node>(grid_.Index(id));
  last_asked_[node] = ++asks_;
  if (!held_[node]) return;
  of_layer_.Remove(node);
  of_layer_.InsertAfter(of_layer_.previous[HeadOf(id.layer)], node);
  of_all_.Remove(node);
  of_all_.InsertAfter(of_all_.previous[HeadOfAll()], node);
}

void Lru::OnAdmitted(ExpertId id) {
  const auto node = static_cast<Node>(grid_.Index(id));
  held_[node] = true;
  Insert(of_layer_, HeadOf(id.layer), node);
  Insert(of_all_, HeadOfAll(), node);
}

void Lru::OnEvicted(ExpertId id) {
  const auto node = static_cast<Node>(grid_.Index(id));
  held_[node] = false;
  of_layer_.Remove(node);
  of_all_.Remove(node);
}

std::size_t Lru::Choose(std::span<const ExpertId> candidates) {
  const auto oldest = std::ranges::min_element(
      candidates, {}, [&](ExpertId id) { return std::pair(last_asked_[grid_.Index(id)], id); });
  return static_cast<std::size_t>(oldest - candidates.begin());
}

std::optional<ExpertId> Lru::FirstToGo(std::optional<std::uint32_t> layer,
                                       std::span<const std::uint8_t> evictable) {
  const Rings& rings = layer ? of_layer_ : of_all_;
  const Node head = layer ? HeadOf(*layer) : HeadOfAll();
  for (Node node = rings.next[head]; node != head; node = rings.next[node]) {
    if (evictable[node] != 0) return ExpertId{node / grid_.experts, node % grid_.experts};
  }
  return std::nullopt;
}

}  // namespace troupe
