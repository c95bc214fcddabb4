// Experts that lie on a slow tier and pass through a cache of slots: where the cache, the loader
// and the expert block meet. Residents are handed out at once, the others as their loads end; which
// one goes for which is the cache's and its policy's decision. Quality stays exact, as an expert's
// bytes are the same wherever they come from, unless low copies are allowed: then those that
// expert/substitution/low_copies.h names are read from a second store, or experts are substituted
// as a chain of policies says; both are counted. A slot is as large as a full copy and holds
// either.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <vector>

#include "base/clock.h"
#include "expert/cache/expert_cache.h"
#include "expert/prefetch/prefetcher.h"
#include "expert/substitution/low_copies.h"
#include "io/aligned_buffer.h"
#include "model/expert_layout.h"
#include "model/expert_source.h"
#include "runtime/hand_out.h"
#include "runtime/miss_event.h"
#include "runtime/substituted_routing.h"
#include "store/expert_loader.h"

namespace troupe {

// The experts once more at lower precision; without a store there are none.
struct LowExperts {
  ExpertLayouts layouts = {};
  std::unique_ptr<ExpertStore> store = nullptr;
};

class OffloadedExperts final : public ExpertSource {
 public:
  struct Options {
    CacheShape cache;
    std::unique_ptr<EvictionPolicy> policy;
    std::unique_ptr<Predictor> predictor = nullptr;  // null: loads begin when they are asked for
    PrefetchOptions prefetch = {};
    std::uint32_t experts_per_token = 1;
    bool normalised_weights = false;  // the model divides a token's by their sum
    LoaderOptions loader = {};
    LowExperts low = {};
    LowCopyOptions low_copies = {};
  };

  // A slot's size for these layouts.
  static Bytes SlotBytes(const ExpertLayouts& layouts);

  // Pool and clock must outlive it. The pool is used between the regions of the expert block.
  static Result<std::unique_ptr<OffloadedExperts>> Create(ExpertLayouts layouts,
                                                          std::unique_ptr<ExpertStore> store,
                                                          std::unique_ptr<AsyncReader> reader,
                                                          ThreadPool& pool, const Clock& clock,
                                                          Options options);

  void PassBegins(const PassFacts& pass) override;
  void Routed(std::uint32_t layer, std::span<const float> scores,
              std::span<ExpertChoice> chosen) override;
  void Ask(std::uint32_t layer, std::span<const ExpertDemand> demands) override;
  std::uint32_t forecast_layers() const override;
  void GateSaid(std::uint32_t layer, const GateScores& said) override;
  void Foretell(std::uint32_t layer, std::uint32_t ahead, const GateScores& forecast) override;
  Result<std::span<const ReadyExpert>> Take(bool wait) override;

  void Advance() override;

  // Where a layer asks for more than has slots, who gives way depends on which load ends first, and
  // a replay could not know. In order, experts are handed out as they were asked for until all have
  // their slots: the same bytes, the same hits on every run, a little waiting.
  void set_in_order(bool in_order) { in_order_ = in_order; }

  // From the next pass on. It takes a low copy of the experts to allow any.
  void set_low_copies(const LowCopyOptions& options);
  const LowCopyOptions& low_copies() const { return low_copies_; }

  // From the next pass on. A chain without links is exact, as is the beginning.
  void set_substitution(SubstitutionChain chain);
  // Null: exact.
  const SubstitutionChain* substitution() const {
    return substitution_ ? &substitution_->chain() : nullptr;
  }

  ExpertUsage usage() const override;
  // Loads that were on their way when asked for and had to begin anew.
  std::uint64_t begun_anew() const { return begun_anew_; }
  // In order, those that went before their turn because nothing else could.
  std::uint64_t given_out_of_turn() const { return given_out_of_turn_; }
  const ExpertCache& cache() const { return cache_; }
  const ExpertLayouts& layouts() const { return layouts_; }
  const ExpertStore& store() const { return *store_; }
  const ExpertLoader& loader() const { return *loader_; }
  const Prefetcher* prefetcher() const { return prefetcher_.get(); }  // null: there is none

  using MissObserver = std::function<void(const MissEvent&)>;
  void set_miss_observer(MissObserver observer) { observer_ = std::move(observer); }

 private:
  struct Waiting {
    MissEvent event;
    ExpertCopy least = ExpertCopy::kFull;  // that may answer
    Nanos asked = 0;
    double stall_before = 0;
  };

  OffloadedExperts(ExpertLayouts layouts, std::unique_ptr<ExpertStore> store, AlignedBuffer slots,
                   std::size_t slot_bytes, const Clock& clock, Options options);

  const ExpertLayout& LayoutOf(ExpertId id, ExpertCopy copy) const;
  bool Substitutes() const {
    return substitution_ && !pass_.HasPrompt() && substitution_->AppliesTo(pass_.rows());
  }
  void DropUnwantedLowCopies();
  ExpertCopy ForeseenCopy(ExpertId id) const;
  std::span<std::byte> Slot(std::uint32_t slot);
  std::optional<ExpertCache::Admission> Admit(ExpertId id, ExpertCopy copy);
  void Request(ExpertId id, ExpertCopy copy, const ExpertCache::Admission& admission,
               Urgency urgency);
  void Place();
  void CallOffStale();
  void Prefetch();
  double LoadSeconds() const;
  void NoteDecided(Nanos since);
  void PutBack(ExpertId id);
  Status CollectEnded();
  void Give(ExpertId id, std::uint32_t tokens);
  std::vector<Waiting>::iterator FindWaiting(ExpertId id);
  std::optional<std::uint32_t> NextInOrder() const;
  bool NextIsReady() const;
  Status WaitForNext();
  std::span<const ReadyExpert> GiveSome();
  std::span<const ReadyExpert> GiveOutOfTurn();
  void Forget();

  ExpertLayouts layouts_;
  std::unique_ptr<ExpertStore> store_;
  LowExperts low_;
  LowCopyOptions low_copies_;
  AlignedBuffer slots_;
  std::size_t slot_bytes_;
  const Clock& clock_;
  RoutingFacts routing_;
  ExpertCache cache_;
  std::optional<SubstitutedRouting> substitution_;
  std::unique_ptr<Prefetcher> prefetcher_;
  std::unique_ptr<ExpertLoader> loader_;
  MissObserver observer_;

  bool in_order_ = false;
  PassFacts pass_;
  std::uint32_t layer_ = 0;
  std::vector<ExpertId> unplaced_;  // asked for, without a slot yet
  std::vector<Waiting> waiting_;    // asked for, on their way
  std::vector<ExpertId> ahead_;     // prefetches whose loads have not ended
  HandOut hand_out_;
  double stall_seconds_ = 0;
  std::uint64_t use_hits_ = 0, use_misses_ = 0;
  std::uint64_t low_given_ = 0, low_assignments_ = 0;
  std::uint64_t substituted_ = 0, dropped_ = 0;
  std::uint64_t begun_anew_ = 0, given_out_of_turn_ = 0;
  double deciding_seconds_ = 0;
};

}  // namespace troupe
