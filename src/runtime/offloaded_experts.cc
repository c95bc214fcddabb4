#include "runtime/offloaded_experts.h"

#include <algorithm>

namespace troupe {

Bytes OffloadedExperts::SlotBytes(const ExpertLayouts& layouts) {
  std::uint64_t largest = 0;
  for (const ExpertLayout& layout : layouts) largest = std::max(largest, layout.SlotBytes());
  return Bytes(AlignUp(largest, kDirectAlignment.count()));
}

Result<std::unique_ptr<OffloadedExperts>> OffloadedExperts::Create(
    ExpertLayouts layouts, std::unique_ptr<ExpertStore> store, std::unique_ptr<AsyncReader> reader,
    ThreadPool& pool, const Clock& clock, Options options) {
  const Bytes slot = SlotBytes(layouts);
  const LoaderOptions loader_options = options.loader;
  TROUPE_ASSIGN_OR_RETURN(AlignedBuffer slots,
                          AlignedBuffer::Allocate(options.cache.slots * slot,
                                                  {.alignment = kHugePage, .huge_pages = true}));
  if (store->direct()) reader->RegisterMemory(slots.bytes());
  TROUPE_CHECK(options.low.store == nullptr ||
               (store->direct() && SlotBytes(options.low.layouts) <= slot));
  std::unique_ptr<OffloadedExperts> experts(
      new OffloadedExperts(std::move(layouts), std::move(store), std::move(slots), slot.count(),
                           clock, std::move(options)));
  TROUPE_ASSIGN_OR_RETURN(
      experts->loader_,
      ExpertLoader::Create(*experts->store_, std::move(reader), slot, pool, clock, loader_options));
  return experts;
}

OffloadedExperts::OffloadedExperts(ExpertLayouts layouts, std::unique_ptr<ExpertStore> store,
                                   AlignedBuffer slots, std::size_t slot_bytes, const Clock& clock,
                                   Options options)
    : layouts_(std::move(layouts)),
      store_(std::move(store)),
      low_(std::move(options.low)),
      slots_(std::move(slots)),
      slot_bytes_(slot_bytes),
      clock_(clock),
      routing_({.experts = options.cache.grid.experts,
                .top_k = options.experts_per_token,
                .normalised = options.normalised_weights,
                .low_copies = low_.store != nullptr}),
      cache_(std::move(options.cache), std::move(options.policy)) {
  set_low_copies(options.low_copies);
  if (options.predictor == nullptr) return;
  prefetcher_ = std::make_unique<Prefetcher>(cache_, options.experts_per_token,
                                             std::move(options.predictor), options.prefetch);
}

void OffloadedExperts::set_low_copies(const LowCopyOptions& options) {
  TROUPE_CHECK(!options.any() || low_.store != nullptr);
  low_copies_ = options;
}

void OffloadedExperts::set_substitution(SubstitutionChain chain) {
  if (chain.exact()) {
    substitution_.reset();
  } else {
    substitution_.emplace(std::move(chain), routing_);
  }
}

const ExpertLayout& OffloadedExperts::LayoutOf(ExpertId id, ExpertCopy copy) const {
  return (copy == ExpertCopy::kLow ? low_.layouts : layouts_)[id.layer];
}

std::span<std::byte> OffloadedExperts::Slot(std::uint32_t slot) {
  return slots_.bytes().subspan(slot * slot_bytes_, slot_bytes_);
}

void OffloadedExperts::Forget() {
  unplaced_.clear();
  waiting_.clear();
  hand_out_.Forget();
}

std::vector<OffloadedExperts::Waiting>::iterator OffloadedExperts::FindWaiting(ExpertId id) {
  return std::ranges::find(waiting_, id, [](const Waiting& w) { return w.event.id; });
}

void OffloadedExperts::Give(ExpertId id, std::uint32_t tokens) {
  const ExpertCopy copy = cache_.CopyOf(id);
  if (copy == ExpertCopy::kLow) {
    ++low_given_;
    low_assignments_ += tokens;
  }
  hand_out_.Add(
      {.expert = id.expert, .weights = LayoutOf(id, copy).At(Slot(cache_.SlotOf(id)).data())},
      cache_.PinResident(id));
}

// What a prompt left in low copies is of no use to tokens that may not have them: their slots are
// better free for what is read ahead.
void OffloadedExperts::DropUnwantedLowCopies() {
  if (low_.store == nullptr) return;
  if (Substitutes() && substitution_->chain().NeedsLowCopies()) return;
  if (pass_.HasPrompt() ? low_copies_.prefill_share > 0 : low_copies_.decode) return;
  Forget();
  if (prefetcher_) prefetcher_->ReleaseAll();
  for (const ExpertId id : cache_.DropLowCopies()) {
    if (prefetcher_) prefetcher_->Evicted(id);
  }
}

void OffloadedExperts::PassBegins(const PassFacts& pass) {
  pass_ = pass;
  DropUnwantedLowCopies();
  if (prefetcher_) prefetcher_->PassBegins(pass.first_layer, pass.rows());
}

// The policy learns by the router's choice: by the answers it would learn to keep what it has.
void OffloadedExperts::Routed(std::uint32_t layer, std::span<const float> scores,
                              std::span<ExpertChoice> chosen) {
  const Nanos scored_from = clock_.Now();
  if (cache_.policy().wants_scores()) cache_.Scored(layer, scores);
  NoteDecided(scored_from);
  if (!Substitutes()) return;
  Forget();
  loader_->Poll();
  // With nobody waiting no end is an error of this call; what has come needs no substitute.
  TROUPE_CHECK(CollectEnded().ok());
  const Nanos start = clock_.Now();
  const SubstitutedRouting::Changes changes = substitution_->Answer(layer, cache_, scores, chosen);
  for (const ExpertDemand& demand : substitution_->routed()) {
    cache_.Chosen({layer, demand.expert}, demand.tokens);
  }
  NoteDecided(start);
  substituted_ += changes.substituted;
  dropped_ += changes.dropped;
}

void OffloadedExperts::Ask(std::uint32_t layer, std::span<const ExpertDemand> demands) {
  Forget();
  // What ended since: with nobody waiting no end is an error of this call.
  TROUPE_CHECK(CollectEnded().ok());
  layer_ = layer;
  if (prefetcher_) prefetcher_->LayerAsks(layer, demands, clock_.Now());
  std::vector<ExpertCopy> least = LeastCopies(demands, pass_.HasPrompt(), low_copies_);
  for (std::size_t i = 0; Substitutes() && i < demands.size(); ++i) {
    if (substitution_->Least(demands[i].expert) == ExpertCopy::kLow) least[i] = ExpertCopy::kLow;
  }
  // A low copy that is not enough gives up its slot at once, so nobody may keep it there.
  if (prefetcher_ && low_.store != nullptr) prefetcher_->Release(layer);
  for (std::size_t i = 0; i < demands.size(); ++i) {
    const ExpertDemand& demand = demands[i];
    const ExpertId id{layer, demand.expert};
    const bool too_low = cache_.Find(id) != Residence::kAbsent && cache_.CopyOf(id) > least[i];
    if (too_low && prefetcher_) prefetcher_->Evicted(id);
    const Residence residence =
        Substitutes() ? cache_.Need(id, least[i]) : cache_.Ask(id, demand.tokens, least[i]);
    if (prefetcher_) prefetcher_->Found(id, residence);
    (residence == Residence::kResident ? use_hits_ : use_misses_) += demand.tokens;
    if (residence == Residence::kResident) {
      Give(id, demand.tokens);  // and with that pinned, before the misses choose their victims
      continue;
    }
    Waiting waiting{
        .event = {.id = id, .tokens = demand.tokens, .joined = residence == Residence::kLoading},
        .least = least[i],
        .asked = clock_.Now(),
        .stall_before = stall_seconds_};
    if (residence == Residence::kLoading) {
      waiting.event.slot = cache_.SlotOf(id);
      loader_->Promote(id);
    }
    waiting_.push_back(std::move(waiting));
  }
  hand_out_.ResidentsEnd();
  // The popular ones first: more can be computed while the rest is on its way.
  std::ranges::stable_sort(waiting_, std::greater(),
                           [](const Waiting& w) { return w.event.tokens; });
  for (const Waiting& waiting : waiting_) {
    if (!waiting.event.joined) unplaced_.push_back(waiting.event.id);
  }
  if (!prefetcher_) return;
  prefetcher_->Release(
      layer);  // what the layer wants of the residents kept for it is pinned by now
  prefetcher_->LayerMissed(static_cast<std::uint32_t>(unplaced_.size()), LoadSeconds());
  CallOffStale();
}

// How long one expert takes the link, by all that was read so far.
double OffloadedExperts::LoadSeconds() const {
  const LoaderStats& stats = loader_->stats();
  if (stats.bytes_read == 0) return 0;
  return stats.busy_seconds / static_cast<double>(stats.bytes_read) *
         static_cast<double>(layouts_[layer_].SlotBytes());
}

// Prefetches that nobody asked for when their layer came are of no use before the next token, and
// those that a later forecast no longer names are not likely to be.
void OffloadedExperts::CallOffStale() {
  std::erase_if(ahead_, [&](ExpertId id) {
    if (!prefetcher_->IsAhead(id)) return true;  // asked for: a demand by now
    if (prefetcher_->IsWanted(id)) return false;
    const ExpertLoader::CallOff called_off = loader_->Cancel(id);
    if (called_off == ExpertLoader::CallOff::kTooLate) return false;
    if (called_off == ExpertLoader::CallOff::kGone) cache_.Abandon(id);
    prefetcher_->Cancelled(id);
    return true;
  });
}

std::uint32_t OffloadedExperts::forecast_layers() const {
  return prefetcher_ == nullptr ? 0 : prefetcher_->forecast_layers(pass_.rows());
}

void OffloadedExperts::GateSaid(std::uint32_t layer, const GateScores& said) {
  if (prefetcher_) prefetcher_->GateSaid(layer, said);
}

void OffloadedExperts::Foretell(std::uint32_t layer, std::uint32_t ahead,
                                const GateScores& forecast) {
  if (prefetcher_ == nullptr) return;
  prefetcher_->Foretell(layer, ahead, forecast);
  CallOffStale();
}

void OffloadedExperts::Advance() {
  loader_->Poll();
  if (!waiting_.empty()) return;  // what ends is for Take to collect, errors among it
  TROUPE_CHECK(CollectEnded().ok());
  Prefetch();
  loader_->Poll();
}

// A guess, like the prefetch itself: if the layer asks for more than the low copy, it is read
// again.
ExpertCopy OffloadedExperts::ForeseenCopy(ExpertId id) const {
  const bool tail = pass_.HasPrompt() && low_copies_.prefill_share > 0 &&
                    prefetcher_->IsForeseenInTail(id, low_copies_.prefill_share);
  return tail ? ExpertCopy::kLow : ExpertCopy::kFull;
}

// Once everything that the layer under way needs has its slot.
void OffloadedExperts::Prefetch() {
  if (prefetcher_ == nullptr || !unplaced_.empty()) return;
  while (const std::optional<ExpertId> id = prefetcher_->Next(ahead_.size())) {
    const ExpertCopy copy = ForeseenCopy(*id);
    const auto admission = Admit(*id, copy);
    if (!admission) return;  // once something is computed there may be a slot
    Request(*id, copy, *admission,
            prefetcher_->is_sure() ? Urgency::kForeseen : Urgency::kPrefetch);
    prefetcher_->Begun(*id, admission->evicted);
    ahead_.push_back(*id);
  }
}

void OffloadedExperts::NoteDecided(Nanos since) {
  deciding_seconds_ += static_cast<double>(clock_.Now() - since) * 1e-9;
}

std::optional<ExpertCache::Admission> OffloadedExperts::Admit(ExpertId id, ExpertCopy copy) {
  const Nanos start = clock_.Now();
  std::optional<ExpertCache::Admission> admission = cache_.Admit(id, copy);
  NoteDecided(start);
  return admission;
}

void OffloadedExperts::Request(ExpertId id, ExpertCopy copy,
                               const ExpertCache::Admission& admission, Urgency urgency) {
  if (prefetcher_ && admission.evicted) {
    prefetcher_->Evicted(*admission.evicted, urgency == Urgency::kDemand);
  }
  const std::uint64_t bytes = AlignUp(LayoutOf(id, copy).SlotBytes(), kDirectAlignment.count());
  loader_->Request(id, Slot(admission.slot).first(bytes), urgency,
                   copy == ExpertCopy::kLow ? low_.store.get() : nullptr);
}

void OffloadedExperts::Place() {
  std::size_t placed = 0;
  for (; placed < unplaced_.size(); ++placed) {
    const ExpertId id = unplaced_[placed];
    const auto waiting = FindWaiting(id);
    const auto admission = Admit(id, waiting->least);
    if (!admission) break;
    waiting->event.slot = admission->slot;
    waiting->event.evicted = admission->evicted;
    Request(id, waiting->least, *admission, Urgency::kDemand);
  }
  unplaced_.erase(unplaced_.begin(), unplaced_.begin() + static_cast<std::ptrdiff_t>(placed));
}

// Among those without a slot, where it would be had it never had one: experts that are given in
// order must not wait for one that the others' slots are kept from.
void OffloadedExperts::PutBack(ExpertId id) {
  ++begun_anew_;
  const auto after = std::ranges::find_if(
      unplaced_, [&](ExpertId other) { return FindWaiting(other) > FindWaiting(id); });
  unplaced_.insert(after, id);
}

Status OffloadedExperts::CollectEnded() {
  Status failed;
  for (LoadEnd& end : loader_->TakeEnded()) {
    const auto waiting = FindWaiting(end.id);
    std::erase(ahead_, end.id);
    if (!end.status.ok()) {
      cache_.Abandon(end.id);
      if (prefetcher_) prefetcher_->Failed(end.id);
      if (end.status.code() == Code::kCancelled) {
        // It was wanted again before what was under way had come.
        if (waiting != waiting_.end()) PutBack(end.id);
        continue;
      }
      // A load that nobody waits for any more failed for nobody.
      if (waiting != waiting_.end() && failed.ok()) failed = std::move(end.status);
      continue;
    }
    if (waiting != waiting_.end() && cache_.CopyOf(end.id) > waiting->least) {
      // Read ahead in the low copy, and more popular than foreseen.
      cache_.Abandon(end.id);
      PutBack(end.id);
      continue;
    }
    cache_.Loaded(end.id);
    if (waiting == waiting_.end()) {
      if (prefetcher_) prefetcher_->Arrived(end.id);
      continue;
    }
    waiting->event.load_seconds = static_cast<double>(clock_.Now() - waiting->asked) * 1e-9;
    waiting->event.low = cache_.CopyOf(end.id) == ExpertCopy::kLow;
    waiting->event.bytes = Bytes(LayoutOf(end.id, cache_.CopyOf(end.id)).SourceBytes());
    Give(end.id, waiting->event.tokens);
  }
  return failed;
}

// Who is to be given next where the order matters.
std::optional<std::uint32_t> OffloadedExperts::NextInOrder() const {
  if (!in_order_ || unplaced_.empty() || hand_out_.residents() > 0) return std::nullopt;
  return waiting_.front().event.id.expert;
}

bool OffloadedExperts::NextIsReady() const {
  const std::optional<std::uint32_t> next = NextInOrder();
  return next ? hand_out_.IsReady(*next) : hand_out_.ready() > 0;
}

// Everything that is ready; but while experts wait for slots, and where each is used by many
// tokens, only a few at a time, so that their slots come free and the reads behind them begin while
// the others are computed.
std::span<const ReadyExpert> OffloadedExperts::GiveSome() {
  constexpr std::size_t kFew = 4, kSome = 8;
  if (const std::optional<std::uint32_t> next = NextInOrder()) {
    return hand_out_.IsReady(*next) ? hand_out_.GiveOne(*next) : hand_out_.Give(0);
  }
  std::size_t most = hand_out_.ready();
  if (prefetcher_ && prefetcher_->is_sure()) most = std::min(most, kSome);
  if (!unplaced_.empty()) most = std::min(most, kFew);
  if (in_order_ && !unplaced_.empty()) most = std::min(most, hand_out_.residents());
  return hand_out_.Give(most);
}

// The next in order waits for a slot, and all slots are those of others that came before their
// turn, as what was read ahead may: the first of them takes it.
std::span<const ReadyExpert> OffloadedExperts::GiveOutOfTurn() {
  for (const Waiting& waiting : waiting_) {
    if (hand_out_.IsReady(waiting.event.id.expert)) {
      ++given_out_of_turn_;
      return hand_out_.GiveOne(waiting.event.id.expert);
    }
  }
  TROUPE_CHECK(false);
}

// Until the next may be given, or nothing is left to wait for.
Status OffloadedExperts::WaitForNext() {
  const Nanos start = clock_.Now();
  Status status;
  while (!NextIsReady() && status.ok()) {
    // The layer under way goes before residents kept for the next one.
    if (loader_->under_way() == 0 && prefetcher_) prefetcher_->ReleaseAll();
    Place();
    if (loader_->under_way() == 0) break;
    loader_->Wait();
    status = CollectEnded();
  }
  stall_seconds_ += static_cast<double>(clock_.Now() - start) * 1e-9;
  return status;
}

Result<std::span<const ReadyExpert>> OffloadedExperts::Take(bool wait) {
  hand_out_.LetGoOfGiven();
  Place();
  Prefetch();
  loader_->Poll();
  Status status = CollectEnded();
  if (wait && !NextIsReady() && status.ok()) status = WaitForNext();
  if (!status.ok()) {
    Forget();
    return status;
  }
  const std::span<const ReadyExpert> given = wait && !NextIsReady() ? GiveOutOfTurn() : GiveSome();
  for (const ReadyExpert& expert : given) {
    const auto waiting = FindWaiting({layer_, expert.expert});
    if (waiting == waiting_.end()) continue;  // it was resident
    waiting->event.waited_seconds = stall_seconds_ - waiting->stall_before;
    if (observer_) observer_(waiting->event);
    waiting_.erase(waiting);
  }
  return given;
}

ExpertUsage OffloadedExperts::usage() const {
  const CacheStats& cache = cache_.stats();
  const LoaderStats& loader = loader_->stats();
  const PrefetchStats ahead = prefetcher_ ? prefetcher_->stats() : PrefetchStats();
  return {.hits = cache.hits,
          .misses = cache.misses + cache.joined,
          .use_hits = use_hits_,
          .use_misses = use_misses_,
          .reads = loader.reads,
          .bytes_read = loader.bytes_read,
          .reading_seconds = loader.busy_seconds,
          .stall_seconds = stall_seconds_,
          .low_copies = low_given_,
          .low_assignments = low_assignments_,
          .substituted = substituted_,
          .dropped = dropped_,
          .deciding_seconds = deciding_seconds_,
          .prefetches = ahead.loads,
          .prefetch_useful = ahead.useful,
          .prefetch_late = ahead.late,
          .prefetch_cancelled = ahead.cancelled,
          .prefetch_wasted = ahead.wasted,
          .prefetch_waiting =
              prefetcher_ ? static_cast<std::int64_t>(prefetcher_->waiting()) : std::int64_t{0},
          .asks_after_guess = ahead.asked,
          .guessed = ahead.guessed,
          .expected = ahead.expected,
          .left_out = prefetcher_ ? prefetcher_->predictor().left_out() : 0,
          .layers = {cache_.layer_hits().begin(), cache_.layer_hits().end()}};
}

}  // namespace troupe
