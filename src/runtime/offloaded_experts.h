// Experts that lie on a slow tier and pass through a cache of slots. What is loaded, and which
// expert is given out when, MissFlow decides (expert/flow/miss_flow.h); here it meets the loader,
// the clock and the expert block. Answers are exact, as an expert's bytes are the same wherever
// they come from, unless low copies or substitution are allowed; both are counted.
#pragma once

#include <troupe/state.h>

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <vector>

#include "base/clock.h"
#include "expert/flow/distribution_judge.h"
#include "expert/flow/miss_flow.h"
#include "expert/flow/usage_ledger.h"
#include "model/byte_progress.h"
#include "model/expert_source.h"
#include "runtime/expert_peers.h"
#include "runtime/held_experts.h"
#include "runtime/offload_report.h"
#include "runtime/pass_times.h"
#include "runtime/slot_loads.h"
#include "runtime/slot_use.h"
#include "runtime/timed_policy.h"

namespace troupe {

class OffloadedExperts final : public ExpertSource {
 public:
  struct Options {
    CacheShape cache;
    std::unique_ptr<EvictionPolicy> policy;
    std::unique_ptr<Predictor> predictor = nullptr;  // null: loads begin when they are asked for
    PrefetchOptions prefetch = {};
    bool by_worth = false;                         // see FlowOptions
    std::optional<ScoreTables> score_tables = {};  // the same
    std::uint32_t experts_per_token = 1;
    bool normalised_weights = false;  // the model divides a token's by their sum
    LoaderOptions loader = {};
    MeasuredCosts costs = {};
    std::vector<ExpertExtras> extras = {};  // by layer, of those that have any
    LowExperts low = {};
    LowCopyOptions low_copies = {};
    bool in_order = false;  // see FlowOptions
    bool drafts = false;    // see FlowOptions
  };

  static Bytes SlotBytes(const ExpertLayouts& layouts) { return SlotLoads::SlotBytes(layouts); }

  // Pool and clock must outlive it. The pool is used between the regions of the expert block.
  static Result<std::unique_ptr<OffloadedExperts>> Create(ExpertLayouts layouts,
                                                          std::unique_ptr<ExpertStore> store,
                                                          std::unique_ptr<AsyncReader> reader,
                                                          ThreadPool& pool, const Clock& clock,
                                                          Options options);

  void OnPassBegins(const PassFacts& pass) override;
  void OnRouted(std::uint32_t layer, std::span<const float> scores,
                std::span<ExpertChoice> chosen) override;
  void Ask(const ExpertBatch& batch) override;
  std::uint32_t forecast_layers() const override { return flow_.forecast_layers(); }
  bool forecasts_with_answers() const override { return flow_.forecasts_with_answers(); }
  void OnGateScores(std::uint32_t layer, const GateScores& said) override {
    flow_.OnGateScores(layer, said);
  }
  void OnForecast(std::uint32_t layer, std::uint32_t ahead, const GateScores& forecast) override {
    flow_.OnForecast(layer, ahead, forecast);
  }
  Result<std::span<const ReadyExpert>> Take(bool wait) override;
  std::optional<BegunExpert> TakeBegun() override;
  void Advance() override;

  // Peers may compute what is missing, from the next pass on. They must outlive it. Passes of which
  // no row wants exactness take their answers in that form.
  void set_peers(ExpertPeers& peers, RowForm answers = RowForm::kFloat);
  // Between passes: brings experts of a layer into memory, where they stay until they are released,
  // and where everybody finds them in held(). What is among `fetched` need not be read.
  // kResourceExhausted: there is no slot for them all.
  Status Hold(std::uint32_t layer, std::span<const std::uint32_t> experts,
              const FetchedExperts& fetched = {});
  // The same without waiting: they are read behind what passes load, and are held one by one as
  // GoOnHolding finds that they have come. Nothing else is to be held meanwhile.
  void BeginHolding(std::uint32_t layer, std::span<const std::uint32_t> experts);
  // Before the first pass: reads these experts of each layer (FirstExperts), so that what asks for
  // them first finds them. They are ordinary residents then.
  Status Fill(std::span<const std::vector<std::uint32_t>> by_layer, const ByteProgress& progress);
  // Between passes, now and then: what came of it, once nothing more is to come. It waits where no
  // pass has begun since it was looked at last.
  std::optional<Status> GoOnHolding();
  // Nobody finds it any more. True once nobody uses it, and its slot is an ordinary one again;
  // until then ask again.
  bool Release(ExpertId id);
  HeldExperts& held();
  // Between passes: a step towards a cache of that many slots, of those that it was made with, in
  // as much time as some experts take to be copied. What is held, and a few slots for passes,
  // stays. The memory of the others goes back to the system.
  SlotUse UseSlots(std::uint32_t slots);
  SlotUse slot_use() const;
  // Between passes: an expert's weights, read if they are not in memory, while `use` runs.
  Status WithExpert(ExpertId id, const std::function<void(const Mlp&)>& use);

  void OnGuessesChecked(std::span<const std::uint32_t> right) override {
    flow_.OnGuessesChecked(right);
  }
  std::uint64_t guesses_learned() const { return flow_.guesses_learned(); }

  // From the next pass on. It takes a low copy of the experts to allow any.
  void set_low_copies(const LowCopyOptions& options) { flow_.set_low_copies(options); }
  // From the next pass on. A chain without links is exact, as is the beginning.
  void set_substitution(SubstitutionChain chain) { flow_.set_substitution(std::move(chain)); }

  // Whether somebody else answers for the expert, so that nobody need read it ahead.
  void set_covered(ExpertId id, bool covered) { flow_.set_covered(id, covered); }
  // How long a load of the expert would take; 0: it is in memory, or no load was measured yet.
  double SecondsAway(ExpertId id) const {
    return flow_.cache().Find(id) == Residence::kResident ? 0 : loads_->SecondsFor(id.layer);
  }

  // Between passes: where each expert is, by ExpertGrid::Index. Takes note of loads that have
  // ended.
  std::vector<ExpertPlace> Places();

  ExpertUsage usage() const override;
  void SettleUsage() override;
  ExpertUsage TakeUsage(RequestId request) override { return ledger_.Take(request); }
  ExpertUsage EndRequest(RequestId request) override;
  OffloadReport report() const;
  std::uint64_t begun_anew() const { return flow_.begun_anew(); }
  std::uint64_t given_out_of_turn() const { return flow_.given_out_of_turn(); }
  const SlotLoads& loads() const { return *loads_; }
  const ExpertLoader& loader() const { return std::as_const(*loads_).loader(); }

  using MissObserver = std::function<void(const MissEvent&)>;
  void set_miss_observer(MissObserver observer) { observer_ = std::move(observer); }
  // Is told where the time of passes goes; it must outlive this. Null: nobody.
  void set_times(PassTimes* times);

 private:
  OffloadedExperts(std::unique_ptr<SlotLoads> loads, const Clock& clock,
                   std::unique_ptr<TimedPolicy> policy, CacheShape cache,
                   std::unique_ptr<Predictor> predictor, FlowOptions flow);

  enum class Waiting { kNever, kForLoads };
  enum class Gave { kMoreMayCome, kAll, kNoSlot };
  struct Holding {
    DemandId demand = 0;
    std::uint32_t layer = 0;
    std::size_t left = 0;         // experts that are not held yet
    std::size_t refused = 0;      // those for which there was no room
    std::uint64_t looked_in = 0;  // the pass,
    Nanos looked_at = 0;          // and when first in it
  };

  void CloseDemand();
  void AskResidents(const ExpertBatch& batch);
  std::optional<Status> HoldWhatCame(Waiting waiting);
  // Gives a demand of one layer to `take`, expert by expert, and closes it unless more may come.
  Result<Gave> GiveTo(DemandId demand, std::uint32_t layer, Waiting waiting,
                      const std::function<void(const Given&, const Mlp&)>& take);
  void CollectEnded();
  // What a load's failure need not be the end of: a peer is asked.
  void AskForFailed(std::span<const LoadEnd> ended);
  void TakeNews();
  void CountRounded(const ExpertPeers::Rows& rows);
  bool HasNothing();
  // Tells the judge once the layer has all of its misses.
  void JudgeLayer();
  void WaitForNext();
  // Before something is given: takes note of what has come.
  void LookAround();
  // The experts that the layer waits for and that were not begun; and one of them whose gate and up
  // have come.
  void FindComing();
  std::optional<BegunExpert> BeginOne();
  void ShareSlots(std::uint32_t all);

  std::unique_ptr<SlotLoads> loads_;
  const Clock& clock_;
  const TimedPolicy& policy_;  // the flow's
  const std::uint32_t most_slots_;
  const std::vector<std::uint32_t> quotas_;  // while nothing is held, of all slots
  MissFlow flow_;
  std::unique_ptr<HeldExperts> held_;          // once somebody asked: it is a large table
  std::map<ExpertId, ExpertCache::Pin> pins_;  // of what is held
  std::optional<Holding> holding_;             // what is being read to be held
  std::uint64_t passes_ = 0;                   // that have begun
  SlotUse slot_use_;                           // its sums
  FilledSlots filled_;
  NoPeers nobody_;
  ExpertPeers* peers_ = &nobody_;
  RowForm peer_answers_ = RowForm::kFloat, pass_answers_ = RowForm::kFloat;
  std::vector<ExpertPeers::Rows> answered_;  // that were not given yet
  UsageLedger ledger_;
  MissObserver observer_;
  PassTimes* times_ = nullptr;

  std::optional<DemandId> demand_;    // of the layer under way
  std::optional<ExpertBatch> batch_;  // that it is for
  std::optional<Nanos> asked_at_;     // of a layer that is to be judged
  DistributionJudge judge_;
  std::uint32_t layer_ = 0;
  std::vector<ReadyExpert> ready_;    // given last
  std::vector<std::uint32_t> begun_;  // experts of the layer that TakeBegun has given
  std::vector<Given> coming_;         // of TakeBegun
  std::uint64_t begun_before_down_ = 0;
  Nanos substituting_ = 0;
};

}  // namespace troupe
