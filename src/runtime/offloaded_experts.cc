#include "runtime/offloaded_experts.h"

#include <algorithm>
#include <utility>

namespace troupe {
namespace {

ExpertPlace PlaceIn(const ExpertCache& cache, ExpertId id) {
  switch (cache.Find(id)) {
    case Residence::kAbsent:
      return ExpertPlace::kAbsent;
    case Residence::kLoading:
      return ExpertPlace::kLoading;
    case Residence::kResident:
      break;
  }
  return cache.CopyOf(id) == ExpertCopy::kLow ? ExpertPlace::kLowInMemory : ExpertPlace::kInMemory;
}

}  // namespace

Result<std::unique_ptr<OffloadedExperts>> OffloadedExperts::Create(
    ExpertLayouts layouts, std::unique_ptr<ExpertStore> store, std::unique_ptr<AsyncReader> reader,
    ThreadPool& pool, const Clock& clock, Options options) {
  const bool low_copies = options.low.store != nullptr;
  TROUPE_ASSIGN_OR_RETURN(
      std::unique_ptr<SlotLoads> loads,
      SlotLoads::Create(std::move(layouts), std::move(store), std::move(options.low),
                        options.cache.slots, std::move(reader), pool, clock, options.loader,
                        std::move(options.costs)));
  loads->set_extras(std::move(options.extras));
  auto policy = std::make_unique<TimedPolicy>(std::move(options.policy), clock);
  FlowOptions flow{.routing = {.experts = options.cache.grid.experts,
                               .top_k = options.experts_per_token,
                               .normalised = options.normalised_weights,
                               .low_copies = low_copies},
                   .prefetch = options.prefetch,
                   .low_copies = options.low_copies,
                   .in_order = options.in_order,
                   .by_worth = options.by_worth,
                   .score_tables = std::move(options.score_tables),
                   .drafts = options.drafts};
  return std::unique_ptr<OffloadedExperts>(
      new OffloadedExperts(std::move(loads), clock, std::move(policy), std::move(options.cache),
                           std::move(options.predictor), std::move(flow)));
}

OffloadedExperts::OffloadedExperts(std::unique_ptr<SlotLoads> loads, const Clock& clock,
                                   std::unique_ptr<TimedPolicy> policy, CacheShape cache,
                                   std::unique_ptr<Predictor> predictor, FlowOptions flow)
    : loads_(std::move(loads)),
      clock_(clock),
      policy_(*policy),
      most_slots_(cache.slots),
      quotas_(cache.quotas),
      flow_(std::move(cache), std::move(policy), std::move(predictor), *loads_, std::move(flow)) {}

void OffloadedExperts::CloseDemand() {
  if (!demand_) return;
  flow_.Close(*std::exchange(demand_, std::nullopt));
  batch_.reset();
  asked_at_.reset();
  answered_.clear();
  begun_.clear();
  peers_->Forget();
}

void OffloadedExperts::CollectEnded() {
  const std::vector<LoadEnd> ended = loads_->TakeEnded();
  AskForFailed(ended);
  flow_.OnLoadsEnded(ended, clock_.Now());
}

void OffloadedExperts::AskForFailed(std::span<const LoadEnd> ended) {
  if (!demand_ || batch_->input.tokens > peers_->most_rows()) return;
  for (const LoadEnd& end : ended) {
    const bool failed = !end.status.ok() && end.status.code() != Code::kCancelled;
    if (!failed || end.id.layer != layer_ || !flow_.Waits(*demand_, end.id.expert)) continue;
    if (peers_->AskInPlaceOfDisk(*batch_, end.id.expert)) flow_.GiveAway(*demand_, end.id.expert);
  }
}

void OffloadedExperts::OnPassBegins(const PassFacts& pass) {
  CloseDemand();
  ++passes_;
  if (!ledger_.is_settled()) SettleUsage();
  ledger_.OnPassBegins(pass);
  const bool any_exact = std::ranges::any_of(pass.groups, &RowGroupFacts::exact);
  pass_answers_ = any_exact ? RowForm::kFloat : peer_answers_;
  if (times_ != nullptr && !pass.drafts) times_->OnPassBegins(pass, clock_.Now());
  flow_.OnPassBegins(pass);
}

void OffloadedExperts::OnRouted(std::uint32_t layer, std::span<const float> scores,
                                std::span<ExpertChoice> chosen) {
  if (!flow_.drafts() && !flow_.Substitutes()) return flow_.OnRouted(layer, scores, chosen);
  CloseDemand();
  loads_->loader().Poll();
  CollectEnded();  // what has come needs no substitute
  if (flow_.drafts()) return flow_.OnRouted(layer, scores, chosen);
  const Nanos start = clock_.Now(), policy = policy_.spent();
  flow_.OnRouted(layer, scores, chosen);
  substituting_ += clock_.Now() - start - (policy_.spent() - policy);
}

// No peer is asked, and nothing that is measured is a pass's.
void OffloadedExperts::AskResidents(const ExpertBatch& batch) {
  demand_ = flow_.Ask(batch.layer, batch.demands, clock_.Now());
  batch_ = batch;
}

void OffloadedExperts::Ask(const ExpertBatch& batch) {
  CloseDemand();
  CollectEnded();
  layer_ = batch.layer;
  if (flow_.drafts()) return AskResidents(batch);
  peers_->OnAsked(batch, pass_answers_);
  const Nanos now = clock_.Now();
  const auto rows = static_cast<std::uint32_t>(batch.input.tokens);
  loads_->set_shares(rows <= peers_->most_rows() && judge_.MayShare(rows, now));
  if (times_ != nullptr) times_->OnAsked(batch.layer, now);
  demand_ = flow_.Ask(batch.layer, batch.demands, now);
  batch_ = batch;
  const PlannedMisses& planned = flow_.Planned(*demand_);
  if (planned.had_choice && planned.all_local_seconds > 0) asked_at_ = now;
  if (const auto elsewhere = flow_.Elsewhere(*demand_); !elsewhere.empty()) {
    peers_->Ask(batch, elsewhere);
  }
}

void OffloadedExperts::Advance() {
  loads_->loader().Poll();
  if (flow_.AnyRowWaits()) return;  // what ends is for Take to collect
  CollectEnded();
  flow_.Continue();
  loads_->loader().Poll();
}

void OffloadedExperts::TakeNews() {
  if (!peers_->waiting()) return;
  const ExpertPeers::News news = peers_->Take();
  for (const ExpertPeers::Rows& rows : news.answered) {
    const auto elsewhere = flow_.Elsewhere(*demand_);
    if (std::ranges::find(elsewhere, rows.expert, &AnsweredElsewhere::expert) == elsewhere.end()) {
      if (!flow_.Waits(*demand_, rows.expert)) continue;  // its load has just ended
      flow_.GiveAway(*demand_, rows.expert);
    }
    CountRounded(rows);
    answered_.push_back(rows);
  }
  for (const std::uint32_t expert : news.to_load) flow_.TakeBack(*demand_, expert);
  if (!news.to_load.empty()) flow_.Continue();
}

void OffloadedExperts::CountRounded(const ExpertPeers::Rows& rows) {
  if (rows.form == RowForm::kFloat) return;
  const auto count = static_cast<std::uint32_t>(batch_->RowsOf(rows.expert).size());
  flow_.OnRounded(layer_, {.expert = rows.expert, .tokens = count}, rows.form);
}

// Nothing may be given before a load ends or a peer says something.
bool OffloadedExperts::HasNothing() {
  if (!answered_.empty()) return false;
  if (flow_.IsDone(*demand_)) return peers_->waiting();
  return flow_.MustWait(*demand_);
}

void OffloadedExperts::WaitForNext() {
  // With both under way each is looked at in turn: little against what a load takes, and a wait for
  // both at once would need every reader to be woken from outside.
  constexpr Nanos kTurn = 50'000;
  if (!HasNothing()) return;
  const Nanos start = clock_.Now();
  do {
    if (!peers_->waiting()) {
      loads_->Wait();
    } else if (loads_->idle()) {
      peers_->Wait(std::nullopt);
    } else {
      loads_->loader().WaitFor(kTurn);
    }
    CollectEnded();
    TakeNews();
  } while (HasNothing());
  const Nanos end = clock_.Now();
  flow_.OnStalled(end - start);
  if (times_ != nullptr) times_->OnStalled({start, end});
}

void OffloadedExperts::LookAround() {
  flow_.LetGo(*demand_);
  flow_.Continue();
  loads_->loader().Poll();
  CollectEnded();
  TakeNews();
}

void OffloadedExperts::FindComing() {
  flow_.Coming(*demand_, coming_);
  std::erase_if(coming_, [this](const Given& expert) {
    return std::ranges::find(begun_, expert.expert) != begun_.end();
  });
}

std::optional<BegunExpert> OffloadedExperts::BeginOne() {
  for (const Given& expert : coming_) {
    const ExpertId id{layer_, expert.expert};
    if (!loads_->HasBegun(id)) continue;
    begun_.push_back(expert.expert);
    ++begun_before_down_;
    return BegunExpert{.expert = expert.expert,
                       .weights = loads_->WeightsIn(expert.slot, id, ExpertCopy::kFull)};
  }
  return std::nullopt;
}

// With peers answers may come first, and from a store that is not direct experts come whole.
std::optional<BegunExpert> OffloadedExperts::TakeBegun() {
  std::optional<BegunExpert> begun;
  if (peers_ != &nobody_ || flow_.drafts() || !loads_->store().direct()) return begun;
  LookAround();
  if (!HasNothing()) return begun;
  const Nanos start = clock_.Now();
  bool has_waited = false;
  for (FindComing(); !coming_.empty() && HasNothing(); FindComing()) {
    begun = BeginOne();
    if (begun) break;
    loads_->loader().WaitForPiece();
    CollectEnded();
    has_waited = true;
  }
  if (!has_waited) return begun;
  const Nanos end = clock_.Now();
  flow_.OnStalled(end - start);
  if (times_ != nullptr) times_->OnStalled({start, end});
  return begun;
}

Result<std::span<const ReadyExpert>> OffloadedExperts::Take(bool wait) {
  LookAround();
  if (wait) WaitForNext();
  const Result<std::span<const Given>> given = flow_.Give(*demand_);
  if (!given.ok()) {
    CloseDemand();
    return given.status();
  }
  // Nothing, if others hold every slot: the caller asks again once they have let go.
  TROUPE_CHECK(!wait || !given->empty() || !answered_.empty() || flow_.open_demands() > 1);
  ready_.clear();
  for (const ExpertPeers::Rows& rows : answered_) {
    ready_.push_back({.expert = rows.expert, .answer = ReadyRows{rows.values}});
  }
  answered_.clear();
  for (const Given& expert : *given) {
    if (peers_->waiting()) peers_->OnLoaded(expert.expert);
    ready_.push_back(
        {.expert = expert.expert,
         .answer = loads_->WeightsIn(expert.slot, {layer_, expert.expert}, expert.copy)});
  }
  JudgeLayer();
  for (MissEvent& miss : flow_.GivenMisses(*demand_)) {
    miss.bytes = loads_->SourceBytes(layer_, miss.low ? ExpertCopy::kLow : ExpertCopy::kFull);
    if (observer_) observer_(miss);
    if (times_ != nullptr) times_->OnMiss(miss);
  }
  return std::span<const ReadyExpert>(ready_);
}

void OffloadedExperts::JudgeLayer() {
  if (!asked_at_ || !flow_.IsDone(*demand_) || peers_->waiting()) return;
  const Nanos now = clock_.Now();
  const PlannedMisses& planned = flow_.Planned(*demand_);
  judge_.OnLayer({.layer = layer_,
                  .rows = static_cast<std::uint32_t>(batch_->input.tokens),
                  .misses = planned.misses,
                  .elsewhere = planned.elsewhere,
                  .all_local_seconds = planned.all_local_seconds,
                  .planned_seconds = planned.seconds,
                  .took_seconds = static_cast<double>(now - *asked_at_) * 1e-9},
                 now);
  asked_at_.reset();
}

void OffloadedExperts::set_peers(ExpertPeers& peers, RowForm answers) {
  CloseDemand();
  peers_ = &peers;
  peer_answers_ = answers;
  loads_->set_peers(peers, flow_.cache().shape().grid.experts);
}

std::vector<ExpertPlace> OffloadedExperts::Places() {
  loads_->loader().Poll();
  CollectEnded();
  const ExpertCache& cache = flow_.cache();
  const ExpertGrid& grid = cache.shape().grid;
  std::vector<ExpertPlace> places;
  places.reserve(grid.Count());
  for (std::uint32_t layer = 0; layer < grid.layers; ++layer) {
    for (std::uint32_t expert = 0; expert < grid.experts; ++expert) {
      places.push_back(PlaceIn(cache, {.layer = layer, .expert = expert}));
    }
  }
  return places;
}

ExpertUsage OffloadedExperts::usage() const {
  ExpertUsage usage = flow_.usage();
  const LoaderStats& loader = std::as_const(*loads_).loader().stats();
  usage.reads = loader.reads;
  usage.bytes_read = loader.bytes_read;
  usage.reading_seconds = loader.busy_seconds;
  usage.verified = std::as_const(*loads_).store().verified();
  usage.deciding_seconds = static_cast<double>(policy_.spent() + substituting_) * 1e-9;
  return usage;
}

OffloadReport OffloadedExperts::report() const {
  const ExpertCache& cache = flow_.cache();
  OffloadReport report{.shape = cache.shape(),
                       .store = std::string(loads_->store().name()),
                       .reader = std::string(loader().reader().name()),
                       .policy = std::string(cache.policy().name()),
                       .cache = cache.stats(),
                       .shielded = cache.policy().shielded(),
                       .loads = loader().stats(),
                       .begun_before_down = begun_before_down_,
                       .filled = filled_,
                       .recent_bytes_per_second = loads_->recent_bytes_per_second(),
                       .prefetch = std::nullopt,
                       .low_copies = flow_.low_copies(),
                       .substitution = {}};
  if (peers_ != &nobody_) {
    report.distribution = judge_.Report();
    report.judged = judge_.recent();
    report.sharing_given_up = judge_.IsGivenUp();
    report.peer_answers = peer_answers_;
  }
  if (const auto files = loads_->store().files(); !files.empty()) {
    report.device = files.front().identity().device;
  }
  if (const Prefetcher* prefetcher = flow_.prefetcher()) {
    report.prefetch = {
        .predictor = std::string(flow_.reads_by_worth() ? WorthPrefetch::kName
                                                        : prefetcher->predictor().name()),
        .stats = flow_.prefetch().stats(),
        .governor_rests = prefetcher->governor().rests(),
        .wasted_share = prefetcher->governor().wasted_share()};
  }
  if (const SubstitutionChain* chain = flow_.substitution()) report.substitution = chain->Report();
  return report;
}

void OffloadedExperts::SettleUsage() {
  ledger_.Settle(usage(), flow_.TakeGroupUses());
  if (times_ != nullptr && !flow_.drafts()) times_->OnPassEnds(clock_.Now());
}

void OffloadedExperts::set_times(PassTimes* times) {
  times_ = times;
  if (times == nullptr) return loads_->loader().set_reads_observer({});
  loads_->loader().set_reads_observer([times](Nanos begin, Nanos end, std::uint64_t bytes) {
    times->OnReads({begin, end}, bytes);
  });
}

ExpertUsage OffloadedExperts::EndRequest(RequestId request) {
  if (!ledger_.is_settled()) SettleUsage();
  return ledger_.End(request);
}

}  // namespace troupe
