// Asking and giving; miss_flow_loads.cc begins loads and takes their ends.
#include "expert/flow/miss_flow.h"

#include <algorithm>
#include <utility>

#include "base/check.h"

namespace troupe {

MissFlow::MissFlow(CacheShape cache, std::unique_ptr<EvictionPolicy> policy,
                   std::unique_ptr<Predictor> predictor, LoadPort& port, FlowOptions options)
    : options_(std::move(options)),
      port_(port),
      cache_(std::move(cache), std::move(policy)),
      prefetch_(std::make_unique<NoPrefetch>()),
      choices_(cache_.shape().grid.experts),
      answers_({.order = options_.miss_order, .repeatable = options_.in_order}),
      group_uses_(1) {
  set_low_copies(options_.low_copies);
  if (options_.read_ahead) prefetch_ = options_.read_ahead(cache_);
  if (predictor != nullptr) OpenPrefetch(std::move(predictor));
  if (!options_.drafts) return;
  auto named = std::make_unique<NamedAhead>(cache_, std::move(prefetch_));
  named_ahead_ = named.get();
  prefetch_ = std::move(named);
}

void MissFlow::OpenPrefetch(std::unique_ptr<Predictor> predictor) {
  auto prefetcher = std::make_unique<Prefetcher>(cache_, options_.routing.top_k,
                                                 std::move(predictor), options_.prefetch);
  prefetcher_ = prefetcher.get();
  if (options_.by_worth) {
    prefetch_ =
        std::make_unique<WorthPrefetch>(cache_, options_.routing.top_k, std::move(prefetcher),
                                        std::exchange(options_.score_tables, std::nullopt));
  } else {
    prefetch_ = std::move(prefetcher);
  }
}

void MissFlow::set_low_copies(const LowCopyOptions& options) {
  TROUPE_CHECK(!options.any() || options_.routing.low_copies);
  options_.low_copies = options;
}

void MissFlow::set_substitution(SubstitutionChain chain) {
  if (chain.exact()) {
    substitution_.reset();
  } else {
    substitution_.emplace(std::move(chain), options_.routing);
  }
}

// Demands are few, and mostly one.
const OpenDemand& MissFlow::At(DemandId id) const {
  const auto found = std::ranges::find(open_, id, [](const auto& demand) { return demand->id; });
  TROUPE_CHECK(found != open_.end());
  return **found;
}

OpenDemand& MissFlow::At(DemandId id) {
  return const_cast<OpenDemand&>(std::as_const(*this).At(id));
}

OpenDemand& MissFlow::Open(std::uint32_t layer, DemandOf whose) {
  if (spare_.empty()) spare_.push_back(std::make_unique<OpenDemand>());
  open_.push_back(std::move(spare_.back()));
  spare_.pop_back();
  OpenDemand& demand = *open_.back();
  demand.id = ++last_id_;
  demand.layer = layer;
  demand.whose = whose;
  return demand;
}

void MissFlow::Close(DemandId id) {
  const auto found = std::ranges::find(open_, id, [](const auto& demand) { return demand->id; });
  TROUPE_CHECK(found != open_.end());
  (*found)->Reset();
  spare_.push_back(std::move(*found));
  open_.erase(found);
}

bool MissFlow::WantsLowCopies() const {
  if (Substitutes() && substitution_->chain().NeedsLowCopies()) return true;
  const PassFacts& pass = choices_.pass();
  const bool decodes = !pass.HasPrompt() || pass.RowsIn(Phase::kDecode) > 0;
  return (pass.HasPrompt() && options_.low_copies.prefill_share > 0) ||
         (decodes && options_.low_copies.decode);
}

// What a prompt left in low copies is of no use to tokens that may not have them: their slots are
// better free for what is read ahead.
void MissFlow::DropUnwantedLowCopies() {
  if (!options_.routing.low_copies || WantsLowCopies()) return;
  prefetch_->ReleaseAll();
  for (const ExpertId id : cache_.DropLowCopies()) prefetch_->OnEvicted(id);
}

ExpertCache::Resized MissFlow::Resize(std::uint32_t slots) {
  prefetch_->ReleaseAll();  // so that they may go, or move
  ExpertCache::Resized resized = cache_.Resize(slots);
  for (const ExpertId id : resized.evicted) prefetch_->OnEvicted(id);
  return resized;
}

void MissFlow::OnPassBegins(const PassFacts& pass) {
  choices_.OnPassBegins(pass);
  group_uses_.assign(choices_.groups(), {});
  if (pass.drafts) {
    if (named_ahead_ != nullptr) named_ahead_->OnDraftPass();
    return;
  }
  guess_pins_.clear();
  guesses_.OnPassBegins(pass);
  DropUnwantedLowCopies();
  prefetch_->OnPassBegins(pass);
}

// Those of a draft's rows are not kept for later: one who learns from scores learns a little less.
void MissFlow::LearnScores(std::uint32_t layer, std::span<const float> scores) {
  if (!cache_.policy().wants_scores()) return;
  if (!guesses_.any()) return cache_.OnScored(layer, scores);
  const std::size_t experts = cache_.shape().grid.experts;
  std::size_t first = 0;
  for (const RowGroupFacts& group : choices_.pass().groups) {
    if (group.sure() > 0) {
      cache_.OnScored(layer, scores.subspan(first * experts, group.sure() * experts));
    }
    first += group.rows;
  }
}

void MissFlow::OnRouted(std::uint32_t layer, std::span<const float> scores,
                        std::span<ExpertChoice> chosen) {
  if (drafts()) return AnswerByResidents(layer, chosen);
  LearnScores(layer, scores);
  prefetch_->OnScores(layer, scores);
  if (guesses_.any()) guesses_.Keep(layer, chosen);
  if (!Substitutes()) {
    const bool splits = choices_.groups() > 1 || guesses_.any();
    if (splits && !chosen.empty()) choices_.Count(layer, chosen);
    return;
  }
  // The policy learns by the router's choice: by the answers it would learn to keep what it has.
  choices_.Count(layer, chosen);
  const std::span<const RoutingChanges> changes =
      substitution_->Answer(layer, choices_.pass(), cache_, scores, chosen);
  for (const ExpertDemand& demand : choices_.Demands()) {
    const std::span<const Asker> askers = choices_.AskersOf(layer, demand);
    if (!askers.empty()) cache_.OnChosen({layer, demand.expert}, askers);
  }
  choices_.Count(layer, chosen);
  for (std::size_t g = 0; g < changes.size(); ++g) {
    lossy_.substituted += changes[g].substituted;
    lossy_.dropped += changes[g].dropped;
    group_uses_[g].substituted += changes[g].substituted;
    group_uses_[g].dropped += changes[g].dropped;
  }
}

void MissFlow::AnswerByResidents(std::uint32_t layer, std::span<ExpertChoice> chosen) {
  if (named_ahead_ != nullptr) named_ahead_->OnDraftRouted(layer, chosen);
  for (ExpertChoice& choice : chosen) {
    const ExpertId id{layer, choice.expert};
    const bool is_there =
        cache_.Find(id) == Residence::kResident && cache_.CopyOf(id) == ExpertCopy::kFull;
    if (!is_there) choice = {.expert = kNoExpert, .weight = 0};
  }
}

// Nothing can have gone since they were chosen: what is read ahead begins when all have their pins.
DemandId MissFlow::AskResidents(std::uint32_t layer, std::span<const ExpertDemand> demands,
                                Nanos now) {
  OpenDemand& demand = Open(layer, DemandOf::kPass);
  now_ = now;
  for (const ExpertDemand& wanted : demands) {
    AddReady(demand, {layer, wanted.expert}, wanted.tokens);
  }
  demand.hand_out.MarkResidents();
  return demand.id;
}

std::vector<ExpertCopy> MissFlow::LeastCopiesOf(std::uint32_t layer,
                                                std::span<const ExpertDemand> demands,
                                                DemandOf whose) const {
  if (!options_.routing.low_copies || whose != DemandOf::kPass) {
    return std::vector<ExpertCopy>(demands.size(), ExpertCopy::kFull);
  }
  std::vector<RowKinds> rows;
  for (const ExpertDemand& demand : demands) {
    RowKinds kinds = choices_.KindsOf(layer, demand);
    // Those that the chain answered by low copies are content with either.
    if (Substitutes() && substitution_->Least(demand.expert) == ExpertCopy::kLow) kinds.decode = 0;
    rows.push_back(kinds);
  }
  return LeastCopies(rows, options_.low_copies);
}

DemandId MissFlow::Ask(std::uint32_t layer, std::span<const ExpertDemand> demands, Nanos now,
                       DemandOf whose) {
  if (drafts() && whose == DemandOf::kPass) return AskResidents(layer, demands, now);
  OpenDemand& demand = Open(layer, whose);
  now_ = now;
  const bool of_pass = whose == DemandOf::kPass;
  if (of_pass) prefetch_->OnLayerAsks(choices_.Of(layer, demands), now);
  const std::vector<ExpertCopy> least = LeastCopiesOf(layer, demands, whose);
  // A low copy that is not enough gives up its slot at once, so nobody may keep it there.
  if (of_pass && options_.routing.low_copies) prefetch_->Release(layer);
  AnswerCosts costs = port_.CostsFor(layer);
  if (!of_pass) costs.places = {}, costs.holders = {};  // who asks here has decided so
  for (std::size_t i = 0; i < demands.size(); ++i) {
    const bool resident = AskOne(demand, demands[i], least[i], now);
    if (resident) costs.local.busy_seconds += costs.local.SecondsFor(demands[i].tokens);
  }
  demand.hand_out.MarkResidents();
  answers_.Decide(demand, costs);
  if (of_pass) {
    prefetch_->Release(layer);  // what the layer wants of the residents kept for it is pinned
    prefetch_->OnMisses(static_cast<std::uint32_t>(demand.unplaced.size()),
                        port_.SecondsFor(layer));
  }
  CancelStalePrefetches();
  return demand.id;
}

// True if it was resident.
bool MissFlow::AskOne(OpenDemand& demand, const ExpertDemand& wanted, ExpertCopy least, Nanos now) {
  const ExpertId id{demand.layer, wanted.expert};
  const bool of_pass = demand.whose == DemandOf::kPass;
  const Residence before = cache_.Find(id);
  const bool too_low = before != Residence::kAbsent && cache_.CopyOf(id) > least;
  const Residence residence = AskCache(demand, wanted, least);
  if (too_low && (before == Residence::kLoading || cache_.Find(id) == Residence::kAbsent)) {
    prefetch_->OnEvicted(id);
  }
  prefetch_->OnFound(id, residence);
  if (of_pass) CountUses(demand.layer, wanted, residence == Residence::kResident);
  if (residence == Residence::kResident) {
    AddReady(demand, id, wanted.tokens);  // pinned before the misses choose their victims
    return true;
  }
  WaitingMiss miss{.event = {},
                   .least = least,
                   .load = least,
                   .weight = wanted.weight,
                   .asked = now,
                   .stall_before = stall_};
  miss.event.id = id;
  miss.event.tokens = wanted.tokens;
  if (residence == Residence::kLoading) {
    miss.event.joined = true;
    miss.event.slot = cache_.SlotOf(id);
    if (demand.whose != DemandOf::kHolding) port_.Promote(id);
    miss.left = port_.BytesLeft(id);
  }
  if (of_pass) {
    miss.event.foresight =
        prefetch_->ForesightOf(id, miss.event.joined, port_.SecondsFor(id.layer));
  }
  demand.waiting.push_back(std::move(miss));
  return false;
}

// The policy is told who asks: nobody yet, where only a draft's rows do.
Residence MissFlow::AskCache(const OpenDemand& demand, const ExpertDemand& wanted,
                             ExpertCopy least) {
  const ExpertId id{demand.layer, wanted.expert};
  if (demand.whose == DemandOf::kFilling) return cache_.Find(id);  // nobody uses it yet
  if (demand.whose != DemandOf::kPass) {
    const Asker peer{.sequence = kNoSequence, .tokens = wanted.tokens};
    return cache_.Ask(id, {&peer, 1}, least);
  }
  if (Substitutes()) return cache_.Need(id, least);
  const std::span<const Asker> askers = choices_.AskersOf(demand.layer, wanted);
  return askers.empty() ? cache_.Need(id, least) : cache_.Ask(id, askers, least);
}

void MissFlow::OnGuessesChecked(std::span<const std::uint32_t> right) {
  prefetch_->OnGuessesChecked(right);
  if (!guesses_.any()) return;
  for (const std::uint32_t count : right) guesses_learned_ += count;
  guesses_.Settle(right, [this](const LayerChoices& choices) {
    for (const SequenceDemands& of : choices.by_sequence()) {
      for (const ExpertDemand& demand : of.demands) {
        const Asker asker{.sequence = of.sequence, .tokens = demand.tokens};
        cache_.OnChosen({choices.layer(), demand.expert}, {&asker, 1});
      }
    }
    prefetch_->OnGuessRight(choices);
  });
  guess_pins_.clear();
}

// The policy knows nothing of such an expert's use before the check, and would evict it for the
// next layer's: it has not been asked for in a long time. Half of the slots at most.
void MissFlow::KeepForGuesses(const OpenDemand& demand, ExpertId id, std::uint32_t tokens) {
  if (!guesses_.any() || drafts() || demand.whose != DemandOf::kPass) return;
  if (guess_pins_.size() >= cache_.shape().slots / 2) return;
  if (!choices_.AskersOf(id.layer, {.expert = id.expert, .tokens = tokens}).empty()) return;
  guess_pins_.push_back(cache_.PinResident(id));
}

void MissFlow::CountUses(std::uint32_t layer, const ExpertDemand& wanted, bool hit) {
  (hit ? uses_.use_hits : uses_.use_misses) += wanted.tokens;
  group_uses_.resize(choices_.groups());
  for (std::size_t g = 0; g < choices_.groups(); ++g) {
    const std::uint32_t rows = choices_.RowsOf(layer, g, wanted);
    (hit ? group_uses_[g].hits : group_uses_[g].misses) += rows;
  }
}

void MissFlow::AddReady(OpenDemand& demand, ExpertId id, std::uint32_t tokens) {
  const ExpertCopy copy = cache_.CopyOf(id);
  if (copy == ExpertCopy::kLow) {
    ++lossy_.low_copies;
    lossy_.low_assignments += tokens;
    for (std::size_t g = 0; g < choices_.groups(); ++g) {
      group_uses_[g].low += choices_.RowsOf(id.layer, g, {.expert = id.expert, .tokens = tokens});
    }
  }
  KeepForGuesses(demand, id, tokens);
  demand.hand_out.Add({.expert = id.expert, .slot = cache_.SlotOf(id), .copy = copy},
                      cache_.PinResident(id));
}

void MissFlow::OnRounded(std::uint32_t layer, const ExpertDemand& answered, RowForm form) {
  const bool q8 = form == RowForm::kInt8;
  (q8 ? lossy_.peer_q8 : lossy_.peer_bf16) += answered.tokens;
  group_uses_.resize(choices_.groups());
  for (std::size_t g = 0; g < choices_.groups(); ++g) {
    GroupUse& use = group_uses_[g];
    (q8 ? use.peer_q8 : use.peer_bf16) += choices_.RowsOf(layer, g, answered);
  }
}

// Who is to be given next where the order matters.
std::optional<std::uint32_t> MissFlow::NextInOrder(const OpenDemand& demand) const {
  if (!options_.in_order || demand.unplaced.empty() || demand.hand_out.residents() > 0) {
    return std::nullopt;
  }
  return demand.waiting.front().event.id.expert;
}

bool MissFlow::NextIsReady(const OpenDemand& demand) const {
  const std::optional<std::uint32_t> next = NextInOrder(demand);
  return next ? demand.hand_out.IsReady(*next) : demand.hand_out.ready() > 0;
}

bool MissFlow::MustWait(DemandId id) {
  OpenDemand& demand = At(id);
  if (!demand.error.ok() || demand.IsDone() || NextIsReady(demand)) return false;
  // The layer under way goes before residents kept for the next one.
  if (port_.idle()) {
    prefetch_->ReleaseAll();
    guess_pins_.clear();
  }
  Place();
  if (NextIsReady(demand)) return false;
  demand.out_of_turn = port_.idle();
  return !demand.out_of_turn;
}

// Everything that is ready; but while experts wait for slots, and where each is used by many rows,
// only a few at a time, so that their slots come free and the loads behind them begin while the
// others are computed.
std::span<const Given> MissFlow::GiveSome(OpenDemand& demand) {
  constexpr std::size_t kFew = 4, kSome = 8;
  HandOut& hand_out = demand.hand_out;
  if (const std::optional<std::uint32_t> next = NextInOrder(demand)) {
    return hand_out.IsReady(*next) ? hand_out.GiveOne(*next) : hand_out.Give(0);
  }
  std::size_t most = hand_out.ready();
  if (prefetch_->is_sure()) most = std::min(most, kSome);
  if (!demand.unplaced.empty()) most = std::min(most, kFew);
  if (options_.in_order && !demand.unplaced.empty()) most = std::min(most, hand_out.residents());
  return hand_out.Give(most);
}

// The next in order waits for a slot, and all slots are those of others that came before their
// turn, as what was read ahead may: the first of them goes.
std::span<const Given> MissFlow::GiveOutOfTurn(OpenDemand& demand) {
  for (const WaitingMiss& miss : demand.waiting) {
    if (!demand.hand_out.IsReady(miss.event.id.expert)) continue;
    ++given_out_of_turn_;
    return demand.hand_out.GiveOne(miss.event.id.expert);
  }
  return demand.hand_out.Give(0);  // other demands hold the slots
}

Result<std::span<const Given>> MissFlow::Give(DemandId id) {
  OpenDemand& demand = At(id);
  if (!demand.error.ok()) return demand.error;
  const bool out_of_turn = std::exchange(demand.out_of_turn, false) && !NextIsReady(demand);
  const std::span<const Given> given = out_of_turn ? GiveOutOfTurn(demand) : GiveSome(demand);
  demand.given_misses.clear();
  for (const Given& expert : given) {
    const std::size_t at = demand.Find({demand.layer, expert.expert});
    if (at == demand.waiting.size()) continue;  // it was resident
    WaitingMiss& miss = demand.waiting[at];
    miss.event.waited_seconds = static_cast<double>(stall_ - miss.stall_before) * 1e-9;
    demand.given_misses.push_back(std::move(miss.event));
    demand.waiting.erase(demand.waiting.begin() + static_cast<std::ptrdiff_t>(at));
  }
  return given;
}

bool MissFlow::Waits(DemandId id, std::uint32_t expert) const {
  const OpenDemand& demand = At(id);
  return demand.Find({demand.layer, expert}) < demand.waiting.size() &&
         !demand.hand_out.IsReady(expert);
}

void MissFlow::Coming(DemandId id, std::vector<Given>& coming) const {
  coming.clear();
  for (const WaitingMiss& miss : At(id).waiting) {
    const ExpertId wanted = miss.event.id;
    if (cache_.Find(wanted) != Residence::kLoading) continue;
    if (cache_.CopyOf(wanted) != ExpertCopy::kFull) continue;
    coming.push_back({.expert = wanted.expert, .slot = cache_.SlotOf(wanted)});
  }
}

bool MissFlow::AnyRowWaits() const {
  return std::ranges::any_of(open_, [](const auto& demand) {
    return demand->whose != DemandOf::kHolding && !demand->waiting.empty();
  });
}

std::vector<GroupUse> MissFlow::TakeGroupUses() {
  return std::exchange(group_uses_, std::vector<GroupUse>(choices_.groups()));
}

ExpertUsage MissFlow::usage() const {
  const CacheStats& cache = cache_.stats();
  const PrefetchStats ahead = prefetch_->stats();
  ExpertUsage usage;
  static_cast<CacheUse&>(usage) = uses_;
  usage.hits = cache.hits;
  usage.misses = cache.misses + cache.joined;
  usage.stall_seconds = static_cast<double>(stall_) * 1e-9;
  static_cast<AnswerUse&>(usage) = answers_.decided();
  static_cast<LossyUse&>(usage) = lossy_;
  static_cast<PrefetchUse&>(usage) = {
      .prefetches = ahead.loads,
      .prefetch_useful = ahead.useful,
      .prefetch_late = ahead.late,
      .prefetch_cancelled = ahead.cancelled,
      .prefetch_wasted = ahead.wasted,
      .prefetch_waiting = static_cast<std::int64_t>(prefetch_->waiting()),
      .asks_after_guess = ahead.asked,
      .guessed = ahead.guessed,
      .expected = ahead.expected,
      .left_out = prefetch_->left_out(),
      .draft_reads = ahead.drafts_begun,
      .draft_reads_used = ahead.drafts_used,
      .foresight = ahead.foresight};
  usage.layers = {cache_.layer_hits().begin(), cache_.layer_hits().end()};
  return usage;
}

}  // namespace troupe
