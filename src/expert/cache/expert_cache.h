// Which experts are in which slots of memory. Knows residence, pins and shares; a loader fills
// the slots, and an EvictionPolicy chooses which resident goes.
// Threads: one at a time.
//
// A slot holds an expert in one of its copies. A low copy answers only those who say that it may.
//
// Slots are shared by all layers. With a quota for each layer, a layer may hold more than its quota
// while slots are free, and is the first to lose them again; without quotas all layers are one
// pool, in which each may have a floor that others cannot push it below.
#pragma once

#include <troupe/usage.h>

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "base/check.h"
#include "expert/cache/eviction_policy.h"
#include "expert/expert_copy.h"
#include "expert/expert_id.h"

namespace troupe {

enum class Residence { kAbsent, kLoading, kResident };

struct CacheStats {
  std::uint64_t hits = 0;    // asked for and resident
  std::uint64_t joined = 0;  // asked for while its load was under way
  std::uint64_t misses = 0;  // asked for and absent
  std::uint64_t evictions = 0;
  std::uint64_t dropped = 0;  // low copies given up because they were not enough

  bool operator==(const CacheStats&) const = default;
};

class ExpertCache {
 public:
  // Keeps a resident expert in its slot for as long as it lives.
  class Pin {
   public:
    Pin(Pin&& other) noexcept : cache_(std::exchange(other.cache_, nullptr)), id_(other.id_) {}
    Pin& operator=(Pin&& other) noexcept;
    ~Pin() { Release(); }

    ExpertId id() const { return id_; }

   private:
    friend class ExpertCache;
    Pin(ExpertCache& cache, ExpertId id) : cache_(&cache), id_(id) {}
    void Release();

    ExpertCache* cache_;
    ExpertId id_;
  };

  struct Admission {
    std::uint32_t slot = 0;
    std::optional<ExpertId> evicted;  // what the slot held
  };

  struct Move {
    ExpertId id;
    std::uint32_t from = 0, to = 0;
  };
  struct Resized {
    std::vector<ExpertId> evicted;  // where fewer slots do not hold them all
    std::vector<Move> moved;        // each into a slot that was free: who owns the slots copies
    std::uint32_t below = 0;        // the slots from here on are empty, and stay so
  };

  ExpertCache(CacheShape shape, std::unique_ptr<EvictionPolicy> policy);

  Residence Find(ExpertId id) const { return entries_[shape_.grid.Index(id)].residence; }
  std::uint32_t SlotOf(ExpertId id) const;  // of one that is resident or loading

  // Whether something else than this cache answers for the expert: it need not be read ahead.
  void set_covered(ExpertId id, bool covered) {
    covered_.resize(entries_.size());
    covered_[shape_.grid.Index(id)] = covered;
  }
  // Neither here nor covered.
  bool IsMissing(ExpertId id) const {
    return Find(id) == Residence::kAbsent && (covered_.empty() || !covered_[shape_.grid.Index(id)]);
  }

  ExpertCopy CopyOf(ExpertId id) const;  // of one that is resident or loading

  // Notes that a layer needs the expert now, in a copy no lower than `least`, and tells whether it
  // is there. A resident that is lower gives up its slot, unless it is pinned: then it only counts
  // as absent. One that is being loaded is kLoading whatever its copy.
  Residence Ask(ExpertId id, std::span<const Asker> askers, ExpertCopy least = ExpertCopy::kFull);
  // By rows of the only sequence that there is.
  Residence Ask(ExpertId id, std::uint32_t tokens, ExpertCopy least = ExpertCopy::kFull) {
    const Asker asker{.tokens = tokens};
    return Ask(id, {&asker, 1}, least);
  }

  // Ask in its two halves, for those who answer a router's choice otherwise: the policy learns by
  // what was chosen, and what is needed is something else.
  void OnChosen(ExpertId id, std::span<const Asker> askers) { policy_->OnAsked(id, askers); }
  Residence Need(ExpertId id, ExpertCopy least = ExpertCopy::kFull);

  // What the layer's router said, for policies that want it.
  void OnScored(std::uint32_t layer, std::span<const float> scores) {
    policy_->OnScored(layer, scores);
  }

  // Gives an absent expert a slot to be loaded into. None if every slot it may have is in use: a
  // pin released or a load ended may change that.
  std::optional<Admission> Admit(ExpertId id, ExpertCopy copy = ExpertCopy::kFull);
  void OnLoaded(ExpertId id);  // the load has ended well
  void Abandon(ExpertId id);   // it has not, or was called off: the slot is free again

  // Gives up a resident, unless it is pinned; says whether it did.
  bool GiveUp(ExpertId id);
  // Gives up every low copy that is resident and not pinned; says which.
  std::vector<ExpertId> DropLowCopies();

  [[nodiscard]] Pin PinResident(ExpertId id);

  // Uses the first `slots` alone, of those that it was made with. What is pinned or being loaded
  // above them stays there: the next call moves it. REQUIRES: at least one, and no more than that.
  Resized Resize(std::uint32_t slots);

  // In place of those that it has had: one for each layer, where it has quotas at all.
  void set_quotas(std::vector<std::uint32_t> quotas) {
    TROUPE_CHECK(quotas.size() == shape_.quotas.size());
    shape_.quotas = std::move(quotas);
  }

  const CacheShape& shape() const { return shape_; }
  const EvictionPolicy& policy() const { return *policy_; }
  const CacheStats& stats() const { return stats_; }
  std::span<const LayerHits> layer_hits() const { return layer_hits_; }
  std::uint32_t held(std::uint32_t layer) const { return held_[layer]; }  // resident or loading
  std::uint32_t free_slots() const { return static_cast<std::uint32_t>(free_.size()); }

 private:
  struct Entry {
    Residence residence = Residence::kAbsent;
    ExpertCopy copy = ExpertCopy::kFull;
    std::uint32_t slot = 0;
    std::uint32_t pins = 0;
  };

  Entry& At(ExpertId id) { return entries_[shape_.grid.Index(id)]; }
  std::optional<ExpertId> ChooseVictim(ExpertId wanted);
  // Of a layer that holds more than its quota, but not of that one.
  std::optional<ExpertId> ChooseInExcess(std::optional<std::uint32_t> but);
  std::optional<ExpertId> ChooseToShrink();
  void EvictDownTo(std::uint32_t slots, std::vector<ExpertId>& evicted);
  void MoveBelow(std::uint32_t slots, Resized& resized);
  std::optional<ExpertId> ChooseInLayer(std::uint32_t layer);
  std::optional<ExpertId> ChooseAnywhere();
  // Of the layer itself, or of those that hold more than the floor.
  std::optional<ExpertId> ChooseAboveFloor(std::optional<std::uint32_t> wanted);
  void GatherEvictable(std::uint32_t layer);
  void SetEvictable(ExpertId id, bool evictable) {
    evictable_[shape_.grid.Index(id)] = evictable ? 1 : 0;
  }
  std::optional<ExpertId> ChooseGathered();
  void Drop(ExpertId id);
  void Forget(ExpertId id);

  CacheShape shape_;
  std::uint32_t most_slots_;
  std::unique_ptr<EvictionPolicy> policy_;
  std::vector<Entry> entries_;
  std::vector<bool> covered_;            // empty: nothing ever was
  std::vector<std::uint8_t> evictable_;  // by grid index: resident, and not pinned
  std::vector<std::uint32_t> held_;
  std::vector<std::uint32_t> free_;
  std::vector<ExpertId> candidates_;                             // of the choice under way
  std::vector<std::uint8_t> may_go_;                             // the same, by grid index
  std::vector<std::pair<std::uint32_t, std::uint32_t>> excess_;  // of the choice under way
  CacheStats stats_;
  std::vector<LayerHits> layer_hits_;
};

}  // namespace troupe
