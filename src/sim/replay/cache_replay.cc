#include "sim/replay/cache_replay.h"

#include <algorithm>
#include <iterator>

namespace troupe {

double SubstitutionReport::ReplacedShare() const {
  const std::uint64_t replaced = counts.substituted + counts.low_bit + counts.dropped;
  return counts.slots == 0 ? 0 : static_cast<double>(replaced) / static_cast<double>(counts.slots);
}

CacheReplay::CacheReplay(const TraceHeader& header, ReplaySetup setup)
    : header_(header),
      costs_(std::move(setup.costs)),
      cache_(std::move(setup.cache), std::move(setup.policy)),
      chain_(std::move(setup.substitution)),
      link_(costs_.latency_seconds),
      moe_index_(header.layers) {
  for (std::uint32_t i = 0; i < header.moe_layers.size(); ++i) {
    moe_index_[header.moe_layers[i]] = i;
  }
  result_.layers.resize(header.moe_layers.size());
  TROUPE_CHECK(!chain_ || chain_->limits().most_tokens <= kMostRoutedTokens);
  if (setup.predictor == nullptr) return;
  prefetcher_ = std::make_unique<Prefetcher>(cache_, header.top_k, std::move(setup.predictor),
                                             setup.prefetch);
}

double CacheReplay::LoadSeconds(std::uint32_t layer) const {
  return costs_.load_seconds.empty() ? 0 : costs_.load_seconds[moe_index_[layer]];
}

void CacheReplay::Play(const ReplayPass& pass) {
  const std::uint64_t hits = cache_.stats().hits;
  std::uint64_t asks = 0;
  if (prefetcher_) prefetcher_->PassBegins(header_.moe_layers.front(), pass.tokens);
  for (std::size_t l = 0; l < pass.demands.size(); ++l) asks += PlayLayer(l, pass);
  for (ReplayCounts* counts :
       {&result_.all, pass.phase == TracePhase::kDecode ? &result_.decode : &result_.prefill}) {
    counts->tokens += pass.tokens;
    ++counts->passes;
    counts->hits += cache_.stats().hits - hits;
    counts->asks += asks;
  }
}

bool CacheReplay::Substitutes(const ReplayPass& pass) const {
  const bool prompt = pass.recorded && pass.phase == TracePhase::kPrefill;
  return chain_ && !prompt && pass.tokens <= chain_->limits().most_tokens;
}

// The policy learns by the router's choice: by the answers it would learn to keep what it has.
std::span<const ExpertDemand> CacheReplay::Substitute(std::size_t moe_layer,
                                                      const ReplayPass& pass) {
  const std::uint32_t layer = header_.moe_layers[moe_layer];
  const PassRoutes& routes = pass.routes[moe_layer];
  residence_.resize(header_.experts);
  for (std::uint32_t e = 0; e < header_.experts; ++e) residence_[e] = cache_.Find({layer, e});
  const std::span<const SlotAnswer> answers =
      chain_->Answer({.layer = layer,
                      .experts = header_.experts,
                      .top_k = header_.top_k,
                      .normalised = header_.scores == ScoreKind::kChosenSoftmax,
                      .chosen = routes.chosen,
                      .scores = routes.scores,
                      .residence = residence_});
  for (const ExpertDemand& demand : pass.demands[moe_layer]) {
    cache_.Chosen({layer, demand.expert}, demand.tokens);
  }
  tokens_.assign(header_.experts, 0);
  for (const SlotAnswer& answer : answers) {
    if (answer.kind != AnswerKind::kDrop) ++tokens_[answer.expert];
  }
  needed_.clear();
  for (std::uint32_t e = 0; e < header_.experts; ++e) {
    if (tokens_[e] > 0) needed_.push_back({.expert = e, .tokens = tokens_[e]});
  }
  return needed_;
}

std::uint64_t CacheReplay::PlayLayer(std::size_t moe_layer, const ReplayPass& pass) {
  const double dense =
      costs_.layer_first_seconds + (pass.tokens - 1) * costs_.layer_further_seconds;
  // What ended since is there, and what may be read ahead now is asked for before the layer's own
  // work begins. Then the pins of the layer before are given up.
  CollectEnded();
  if (prefetcher_) Prefetch();
  now_ += dense;
  result_.compute_seconds += dense;
  given_.clear();
  CollectEnded();
  const std::uint64_t hits = cache_.stats().hits;
  if (cache_.policy().wants_scores()) {
    cache_.Scored(header_.moe_layers[moe_layer], pass.routes[moe_layer].scores);
  }
  const bool substitutes = Substitutes(pass);
  const std::span<const ExpertDemand> demands =
      substitutes ? Substitute(moe_layer, pass) : pass.demands[moe_layer];
  Ask(moe_layer, demands, /*chosen=*/substitutes);
  if (costs_.second_lane_seconds) Balance(pass, moe_layer);
  ReplayCounts& counts = result_.layers[moe_layer];
  counts.tokens += pass.tokens;
  ++counts.passes;
  counts.asks += demands.size();
  counts.hits += cache_.stats().hits - hits;
  residents_left_ = ready_.size();
  if (prefetcher_) PlanPrefetch(moe_layer);

  // As the engine takes experts: what is there first, then others as they come.
  for (std::size_t given = elsewhere_, takes = 0; given < demands.size(); ++takes) {
    given_.clear();
    Place();
    if (takes == 0 && !unplaced_.empty()) ++result_.crowded;
    if (prefetcher_ && unplaced_.empty()) Prefetch();
    CollectEnded();
    if (takes > 0 && ready_.empty()) WaitForOne();
    GiveSome(given);
  }
  if (elsewhere_ > 0 && second_lane_ends_ > now_) {
    result_.stall_seconds += second_lane_ends_ - now_;
    now_ = second_lane_ends_;
  }
  return demands.size();
}

void CacheReplay::Ask(std::size_t moe_layer, std::span<const ExpertDemand> demands, bool chosen) {
  const std::uint32_t layer = header_.moe_layers[moe_layer];
  if (prefetcher_) prefetcher_->LayerAsks(layer, demands, static_cast<Nanos>(now_ * 1e9));
  for (const ExpertDemand& demand : demands) {
    const ExpertId id{layer, demand.expert};
    const Residence residence = chosen ? cache_.Need(id) : cache_.Ask(id, demand.tokens);
    if (prefetcher_) prefetcher_->Found(id, residence);
    if (residence == Residence::kResident) {
      ready_.push_back({cache_.PinResident(id), demand.tokens});
      continue;
    }
    waiting_.push_back({.id = id, .tokens = demand.tokens});
    if (residence == Residence::kLoading) {
      link_.Promote(id);
    } else {
      unplaced_.push_back(waiting_.back());
    }
  }
  if (unplaced_.size() > 1) {
    std::ranges::stable_sort(unplaced_, std::greater(), &Asked::tokens);
  }
}

void CacheReplay::Balance(const ReplayPass& pass, std::size_t moe_layer) {
  weights_.assign(header_.experts, 0);
  for (const RoutedSlot& slot : pass.routes[moe_layer].chosen) {
    weights_[slot.expert] = std::max(weights_[slot.expert], slot.weight);
  }
  std::ranges::stable_sort(unplaced_, std::greater(),
                           [this](const Asked& asked) { return weights_[asked.id.expert]; });
  // Known is what experts have taken so far, as it would be where nobody tells.
  const double load = load_mean_.Mean().value_or(LoadSeconds(header_.moe_layers[moe_layer]));
  const LaneSplit split = BalanceLanes(
      static_cast<std::uint32_t>(unplaced_.size()),
      {.load_seconds = load + ExpertSeconds(1), .other_seconds = *costs_.second_lane_seconds});
  elsewhere_ = split.other;
  result_.elsewhere += split.other;
  second_lane_ends_ = now_ + split.other_seconds;
  for (std::size_t i = split.load; i < unplaced_.size(); ++i) {
    std::erase_if(waiting_, [&](const Asked& asked) { return asked.id == unplaced_[i].id; });
  }
  unplaced_.resize(split.load);
}

void CacheReplay::PlanPrefetch(std::size_t moe_layer) {
  const std::uint32_t layer = header_.moe_layers[moe_layer];
  prefetcher_->Release(layer);
  prefetcher_->LayerMissed(static_cast<std::uint32_t>(unplaced_.size()), LoadSeconds(layer));
  CallOffStale();
  const bool followed =
      moe_layer + 1 < header_.moe_layers.size() && header_.moe_layers[moe_layer + 1] == layer + 1;
  if (!followed) return;
  prefetcher_->Foretell(layer + 1, /*ahead=*/1, {});
  CallOffStale();
}

void CacheReplay::CallOffStale() {
  std::erase_if(ahead_, [&](ExpertId id) {
    if (!prefetcher_->IsAhead(id)) return true;  // asked for: a demand by now
    if (prefetcher_->IsWanted(id) || !link_.Cancel(id)) return false;
    cache_.Abandon(id);
    prefetcher_->Cancelled(id);
    return true;
  });
}

void CacheReplay::Load(ExpertId id, const ExpertCache::Admission& admission, bool demand) {
  if (prefetcher_ && admission.evicted) prefetcher_->Evicted(*admission.evicted, demand);
  link_.Request(id, LoadSeconds(id.layer), demand, now_);
  load_mean_.Add(LoadSeconds(id.layer));
  ++result_.loads;
  const std::vector<std::uint64_t>& bytes =
      costs_.expert_bytes.empty() ? header_.expert_bytes : costs_.expert_bytes;
  if (!bytes.empty()) result_.bytes += bytes[moe_index_[id.layer]];
}

void CacheReplay::Place() {
  std::size_t placed = 0;
  for (; placed < unplaced_.size(); ++placed) {
    const auto admission = cache_.Admit(unplaced_[placed].id);
    if (!admission) break;
    Load(unplaced_[placed].id, *admission, /*demand=*/true);
  }
  unplaced_.erase(unplaced_.begin(), unplaced_.begin() + static_cast<std::ptrdiff_t>(placed));
}

void CacheReplay::Prefetch() {
  while (const std::optional<ExpertId> id = prefetcher_->Next(ahead_.size())) {
    const auto admission = cache_.Admit(*id);
    if (!admission) return;
    Load(*id, *admission, /*demand=*/false);
    prefetcher_->Begun(*id, admission->evicted);
    ahead_.push_back(*id);
  }
}

void CacheReplay::CollectEnded() {
  if (link_.NextEnd() > now_) return;
  ended_.clear();
  link_.AdvanceTo(now_, ended_);
  for (const ExpertId id : ended_) {
    cache_.Loaded(id);
    if (prefetcher_) std::erase(ahead_, id);
    const auto waiting = std::ranges::find(waiting_, id, &Asked::id);
    if (waiting == waiting_.end()) {
      if (prefetcher_) prefetcher_->Arrived(id);
      continue;
    }
    ready_.push_back({cache_.PinResident(id), waiting->tokens});
    waiting_.erase(waiting);
  }
}

void CacheReplay::WaitForOne() {
  const double start = now_;
  while (ready_.empty()) {
    // The layer under way goes before residents kept for the next one.
    if (link_.NextEnd() == ReplayLink::kNothing && prefetcher_) prefetcher_->ReleaseAll();
    Place();
    TROUPE_CHECK(link_.NextEnd() != ReplayLink::kNothing);
    now_ = std::max(now_, link_.NextEnd());
    CollectEnded();
  }
  result_.stall_seconds += now_ - start;
}

// Everything that is ready, of a prompt's some at a time; but while experts wait for slots a few
// residents at a time, then one by one in the order of the loads, which is that in which they were
// asked for.
void CacheReplay::GiveSome(std::size_t& given) {
  constexpr std::size_t kFew = 4, kSome = 8;
  std::size_t count = ready_.size();
  if (prefetcher_ && prefetcher_->is_sure()) count = std::min(count, kSome);
  if (!unplaced_.empty()) {
    count = residents_left_ > 0 ? std::min(kFew, residents_left_) : std::min<std::size_t>(1, count);
  }
  residents_left_ -= std::min(residents_left_, count);
  for (std::size_t i = 0; i < count; ++i) {
    const double seconds = ExpertSeconds(ready_[i].tokens);
    now_ += seconds;
    result_.compute_seconds += seconds;
  }
  const auto end = ready_.begin() + static_cast<std::ptrdiff_t>(count);
  given_.assign(std::make_move_iterator(ready_.begin()), std::make_move_iterator(end));
  ready_.erase(ready_.begin(), end);
  given += count;
}

ReplayResult CacheReplay::result() const {
  ReplayResult result = result_;
  result.cache = cache_.stats();
  if (prefetcher_) result.prefetch = prefetcher_->stats();
  if (chain_) {
    result.substitution.counts = chain_->counts();
    for (const auto& link : chain_->links()) {
      result.substitution.links.push_back({.link = link->ToString(), .counts = link->counts()});
    }
  }
  return result;
}

}  // namespace troupe
