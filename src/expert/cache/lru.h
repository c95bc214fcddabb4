// Gives up the expert that was asked for longest ago. Keeps those in the cache in that order, in
// one list a layer and one of all.
#pragma once

#include <vector>

#include "expert/cache/eviction_policy.h"

namespace troupe {

class Lru final : public EvictionPolicy {
 public:
  explicit Lru(ExpertGrid grid);

  std::string_view name() const override { return "lru"; }
  void OnAsked(ExpertId id, std::span<const Asker> askers) override;
  void OnAdmitted(ExpertId id) override;
  void OnEvicted(ExpertId id) override;
  std::size_t Choose(std::span<const ExpertId> candidates) override;
  bool keeps_order() const override { return true; }
  std::optional<ExpertId> FirstToGo(std::optional<std::uint32_t> layer,
                                    std::span<const std::uint8_t> evictable) override;

 private:
  using Node = std::uint32_t;  // an expert's index in the grid, or the head of a list

  // Rings through nodes: after a head comes the expert asked for longest ago.
  struct Rings {
    std::vector<Node> next, previous;

    void Reset(std::size_t nodes);
    void InsertAfter(Node at, Node node);
    void Remove(Node node);
  };

  Node HeadOf(std::uint32_t layer) const { return static_cast<Node>(grid_.Count()) + layer; }
  Node HeadOfAll() const { return static_cast<Node>(grid_.Count()); }
  bool Before(Node a, Node b) const;
  void Insert(Rings& rings, Node head, Node node);

  ExpertGrid grid_;
  std::uint64_t asks_ = 0;
  std::vector<std::uint64_t> last_asked_;  // 0: never
  std::vector<bool> held_;
  Rings of_layer_, of_all_;
};

}  // namespace troupe
