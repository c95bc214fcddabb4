// The adaptive replacement cache (Megiddo and Modha, 2003), one for each share of the slots: T1 has
// experts seen once recently, T2 those seen again, and the ghosts B1 and B2 what left each; a hit
// among the ghosts of one list moves the target size of T1 towards it. With quotas each layer has
// lists of its own, without them all layers share one set.
//
// The cache decides when something must go and what may (pins, loads, other layers' excess); ARC
// chooses among those as REPLACE would.
#pragma once

#include <array>
#include <cstdint>
#include <list>
#include <vector>

#include "expert/cache/eviction_policy.h"

namespace troupe {

class Arc final : public EvictionPolicy {
 public:
  // `capacities`: a number a layer, or one for all.
  Arc(ExpertGrid grid, std::vector<std::uint32_t> capacities);

  std::string_view name() const override { return "arc"; }
  void OnAsked(ExpertId id, std::span<const Asker> askers) override;
  void OnAdmitted(ExpertId id) override;
  void OnEvicted(ExpertId id) override;
  void OnAbandoned(ExpertId id) override;
  std::size_t Choose(std::span<const ExpertId> candidates) override;
  bool keeps_order() const override { return true; }
  std::optional<ExpertId> FirstToGo(std::optional<std::uint32_t> layer,
                                    std::span<const std::uint8_t> evictable) override;

  // The adaptive target of T1 in the lists of this layer.
  double target(std::uint32_t layer) const { return lists_[ListsOf(layer)].target; }

 private:
  enum Where : std::uint8_t { kT1, kT2, kB1, kB2, kNowhere };
  using List = std::list<ExpertId>;  // most recent first

  struct Lists {
    std::uint32_t capacity = 0;
    double target = 0;  // of |T1|: p in the paper
    std::array<List, 4> of;
  };
  struct Entry {
    Where where = kNowhere;
    List::iterator at;
    bool returns_to_t2 = false;  // its ghost was hit: it has been seen twice
    bool asked = false;          // since it came in; a prefetched one may not have been
    Where came_from = kNowhere;  // the ghosts that a prefetch took it from, until it is asked for
  };

  std::size_t ListsOf(std::uint32_t layer) const { return lists_.size() == 1 ? 0 : layer; }
  Entry& At(ExpertId id) { return entries_[grid_.Index(id)]; }
  void Move(ExpertId id, Where to);
  // A ghost was asked for; `b1` and `b2` are the sizes of the ghosts' lists.
  void HitGhost(std::size_t index, Where ghost, double b1, double b2);
  void TrimGhosts(Lists& lists);
  // Whether REPLACE would take from T1.
  bool TakesFromT1(std::size_t index) const;
  // The oldest of a list that may go; with REPLACE's list first, of both.
  template <typename MayGo>
  static const ExpertId* Oldest(const List& list, const MayGo& may_go);
  template <typename MayGo>
  const ExpertId* Replace(std::size_t index, const MayGo& may_go) const;

  ExpertGrid grid_;
  std::vector<Lists> lists_;
  std::vector<Entry> entries_;
  std::vector<bool> missed_in_b2_;  // by lists: the last miss was found in B2
};

}  // namespace troupe
