// Answers a layer's demand for experts: gives what is in the cache at once and the rest as its
// loads end, and decides which loads begin, when, into which slots, and what is given out next.
// Owns the cache, reading ahead and substitution. The engine and the replay drive the same object.
//
// Pure: loading is a port, time comes in as an argument, nothing here reads, waits or computes.
// Several demands may be open at once, a peer's beside that of our own pass; each load serves all
// that want its expert. Of demands that compete for slots the oldest comes first.
//
// A demand is driven like this: Ask; then, until everything is given, LetGo, Continue, Give, and
// where nothing is given and MustWait says so, wait for a load to end; then Close.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "base/clock.h"
#include "base/status.h"
#include "expert/cache/expert_cache.h"
#include "expert/flow/expert_usage.h"
#include "expert/flow/flow_options.h"
#include "expert/flow/guessed_routes.h"
#include "expert/flow/load_port.h"
#include "expert/flow/miss_answers.h"
#include "expert/flow/open_demand.h"
#include "expert/flow/pass_choices.h"
#include "expert/flow/substituted_routing.h"
#include "expert/flow/usage_ledger.h"
#include "expert/prefetch/named_ahead.h"
#include "expert/prefetch/prefetcher.h"
#include "expert/prefetch/worth_prefetch.h"
#include "expert/row_form.h"

namespace troupe {

class MissFlow {
 public:
  // `predictor` null: loads begin when they are asked for. The port must outlive it.
  MissFlow(CacheShape cache, std::unique_ptr<EvictionPolicy> policy,
           std::unique_ptr<Predictor> predictor, LoadPort& port, FlowOptions options);

  // From the next pass on.
  void set_low_copies(const LowCopyOptions& options);
  const LowCopyOptions& low_copies() const { return options_.low_copies; }
  // From the next pass on. A chain without links is exact, as is the beginning.
  void set_substitution(SubstitutionChain chain);
  // Null: exact.
  const SubstitutionChain* substitution() const {
    return substitution_ ? &substitution_->chain() : nullptr;
  }

  // One that drafts (PassFacts::drafts) asks only for what is there: OnRouted leaves out the rest,
  // which is read ahead, and no policy, predictor or count hears of it.
  void OnPassBegins(const PassFacts& pass);
  bool drafts() const { return choices_.pass().drafts; }
  // Whether some rows of the pass may be answered otherwise than the router chose.
  bool Substitutes() const { return substitution_ && substitution_->AppliesTo(choices_.pass()); }
  // What the layer's router said of the pass's rows, before the layer asks: the policy learns from
  // it, and where Substitutes() slots are answered otherwise. Loads that have ended should be told
  // first: what has come needs no substitute.
  void OnRouted(std::uint32_t layer, std::span<const float> scores, std::span<ExpertChoice> chosen);
  // In its place for who knows only how many rows of each group chose an expert: [group][expert].
  void OnCounted(std::uint32_t layer, std::span<const std::uint32_t> by_group) {
    choices_.Take(layer, by_group);
  }

  // Of each group of the last pass, how many of its guesses were right: the policy and the
  // predictor learn of these now. What of the others is in memory stays there as what was read
  // ahead does.
  void OnGuessesChecked(std::span<const std::uint32_t> right);
  // Right guesses that were learned from.
  std::uint64_t guesses_learned() const { return guesses_learned_; }

  // Each expert once.
  DemandId Ask(std::uint32_t layer, std::span<const ExpertDemand> demands, Nanos now,
               DemandOf whose = DemandOf::kPass);
  // The demand's misses without a slot, in the order in which they will be loaded.
  std::span<const ExpertId> Unplaced(DemandId id) const { return At(id).unplaced; }
  // Those that the port's places compute: whoever asked has them do so. They are never given.
  std::span<const AnsweredElsewhere> Elsewhere(DemandId id) const { return At(id).elsewhere; }
  const PlannedMisses& Planned(DemandId id) const { return At(id).planned; }
  // One of them will not be computed there: it is loaded after all, and given.
  void TakeBack(DemandId id, std::uint32_t expert) { answers_.TakeBack(At(id), expert); }

  // Whether the demand waits for its load, and it has not come yet.
  bool Waits(DemandId id, std::uint32_t expert) const;
  // Those of them that are being loaded in their full copy, and into which slots. Unless the load
  // fails they will be given from there.
  void Coming(DemandId id, std::vector<Given>& coming) const;
  // Such a one is computed elsewhere after all, and is never given. Its load goes on.
  void GiveAway(DemandId id, std::uint32_t expert) { answers_.GiveAway(At(id), expert); }

  std::uint32_t forecast_layers() const { return drafts() ? 0 : prefetch_->forecast_layers(); }
  bool forecasts_with_answers() const { return prefetch_->forecasts_with_answers(); }
  void OnGateScores(std::uint32_t layer, const GateScores& said) {
    prefetch_->OnGateScores(layer, said);
  }
  void OnForecast(std::uint32_t layer, std::uint32_t ahead, const GateScores& forecast);

  // A failure is the error of every demand that waits for the expert, and of nobody else's.
  void OnLoadsEnded(std::span<const LoadEnd> ends, Nanos now);

  // Releases the slots of what was given last.
  void LetGo(DemandId id) { At(id).hand_out.LetGoOfGiven(); }
  // Begins the loads that may begin: of misses, and once all have their slots, ahead.
  void Continue();
  // Whether nothing may be given before a load ends; begins what it can first. When it says false,
  // Give gives something, unless the demand is done, or every slot is held for another demand.
  bool MustWait(DemandId id);
  // What may be given now, each with a pin on its slot until LetGo, the next Give or Close. Or the
  // error of a load that the demand waited for: then it can only be closed.
  Result<std::span<const Given>> Give(DemandId id);
  // The misses among what was given last.
  std::span<MissEvent> GivenMisses(DemandId id) { return At(id).given_misses; }
  bool IsDone(DemandId id) const { return At(id).IsDone(); }
  // Nothing is waited for any more. Loads go on, for whoever wants them later.
  void Close(DemandId id);

  // Keeps a resident where it is for as long as the pin lives.
  [[nodiscard]] ExpertCache::Pin Hold(ExpertId id) { return cache_.PinResident(id); }
  // See ExpertCache.
  void set_covered(ExpertId id, bool covered) { cache_.set_covered(id, covered); }
  void set_quotas(std::vector<std::uint32_t> quotas) { cache_.set_quotas(std::move(quotas)); }

  // Between passes: the cache uses the first `slots` alone, as of ExpertCache::Resize.
  ExpertCache::Resized Resize(std::uint32_t slots);

  // Another place has answered rows of that expert in fewer bits than all.
  void OnRounded(std::uint32_t layer, const ExpertDemand& answered, RowForm form);
  // Time passed in which there was nothing to compute.
  void OnStalled(Nanos time) { stall_ += time; }

  std::size_t open_demands() const { return open_.size(); }
  // Whether any demand of rows waits for a load.
  bool AnyRowWaits() const;
  // All but what loading alone knows: reads, bytes, and the time of reading and deciding.
  ExpertUsage usage() const;
  // Of the pass under way, by group, since the last call.
  std::vector<GroupUse> TakeGroupUses();
  // Loads that were under way when asked for and had to begin anew.
  std::uint64_t begun_anew() const { return begun_anew_; }
  // In order, those that went before their turn because nothing else could.
  std::uint64_t given_out_of_turn() const { return given_out_of_turn_; }
  const ExpertCache& cache() const { return cache_; }
  const Prefetching& prefetch() const { return *prefetch_; }
  // Null: nothing is read ahead. Where decode is read ahead by worth: of the other passes.
  const Prefetcher* prefetcher() const { return prefetcher_; }
  bool reads_by_worth() const { return prefetcher_ != nullptr && options_.by_worth; }

 private:
  const OpenDemand& At(DemandId id) const;
  OpenDemand& At(DemandId id);
  OpenDemand& Open(std::uint32_t layer, DemandOf whose);

  bool WantsLowCopies() const;
  void DropUnwantedLowCopies();
  std::vector<ExpertCopy> LeastCopiesOf(std::uint32_t layer, std::span<const ExpertDemand> demands,
                                        DemandOf whose) const;
  bool AskOne(OpenDemand& demand, const ExpertDemand& wanted, ExpertCopy least, Nanos now);
  void OpenPrefetch(std::unique_ptr<Predictor> predictor);
  void AnswerByResidents(std::uint32_t layer, std::span<ExpertChoice> chosen);
  DemandId AskResidents(std::uint32_t layer, std::span<const ExpertDemand> demands, Nanos now);
  void LearnScores(std::uint32_t layer, std::span<const float> scores);
  Residence AskCache(const OpenDemand& demand, const ExpertDemand& wanted, ExpertCopy least);
  void CountUses(std::uint32_t layer, const ExpertDemand& wanted, bool hit);
  void AddReady(OpenDemand& demand, ExpertId id, std::uint32_t tokens);
  void KeepForGuesses(const OpenDemand& demand, ExpertId id, std::uint32_t tokens);

  void Place();
  bool PlaceOne(OpenDemand& demand, ExpertId id);
  void Load(ExpertId id, ExpertCopy copy, const ExpertCache::Admission& admission, Urgency urgency);
  void Prefetch();
  LinkNow Link() const;
  void CancelStalePrefetches();
  void OnLoaded(ExpertId id, Nanos now);
  void OnFailed(ExpertId id, const Status& status);
  void PutBack(OpenDemand& demand, ExpertId id);

  std::optional<std::uint32_t> NextInOrder(const OpenDemand& demand) const;
  bool NextIsReady(const OpenDemand& demand) const;
  std::span<const Given> GiveSome(OpenDemand& demand);
  std::span<const Given> GiveOutOfTurn(OpenDemand& demand);

  FlowOptions options_;
  LoadPort& port_;
  ExpertCache cache_;
  std::unique_ptr<Prefetching> prefetch_;
  const Prefetcher* prefetcher_ = nullptr;
  NamedAhead* named_ahead_ = nullptr;  // the same as prefetch_; null: no pass drafts
  std::optional<SubstitutedRouting> substitution_;
  PassChoices choices_;
  GuessedRoutes guesses_;
  std::uint64_t guesses_learned_ = 0;
  std::vector<ExpertCache::Pin> guess_pins_;  // of what guesses alone have used, until the check
  MissAnswers answers_;

  std::vector<std::unique_ptr<OpenDemand>> open_;   // oldest first
  std::vector<std::unique_ptr<OpenDemand>> spare_;  // closed, for their memory
  DemandId last_id_ = 0;
  std::vector<ExpertId> ahead_;  // prefetches whose loads have not ended

  Nanos stall_ = 0;
  Nanos now_ = 0;  // as it was told last
  CacheUse uses_;
  LossyUse lossy_;
  std::vector<GroupUse> group_uses_;
  std::uint64_t begun_anew_ = 0, given_out_of_turn_ = 0;
};

}  // namespace troupe
