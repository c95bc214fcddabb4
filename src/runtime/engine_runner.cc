#include "runtime/engine_runner.h"

#include <algorithm>
#include <utility>

namespace troupe {

EngineRunner::EngineRunner(Engine& engine, bool keeps_prefixes)
    : engine_(engine),
      keeps_prefixes_(keeps_prefixes),
      exact_(engine.kv()),
      lossy_(engine.kv()),
      kept_(engine, exact_),
      sessions_(engine.plan().memory.sequences) {
  engine_.kv().OnShortage([this](std::size_t pages) { GiveUp(pages); });
}

EngineRunner::~EngineRunner() {
  engine_.kv().OnShortage({});
  Transformer& transformer = engine_.transformer();
  if (heat_ && transformer.route_observer() == &*heat_) transformer.set_route_observer(nullptr);
}

RunnerLimits EngineRunner::limits() const {
  return {
      .rows = engine_.plan().memory.chunk,
      .sequences = engine_.plan().memory.sequences,
      .context = engine_.plan().context(),
      .cache_page = keeps_prefixes_ ? static_cast<std::uint32_t>(engine_.kv().page_positions()) : 0,
      .checks_drafts = engine_.ChecksDrafts(),
      .exact = engine_.exact()};
}

// All or nothing: what a sequence still cannot begin with is better kept.
void EngineRunner::GiveUp(std::size_t pages) {
  const std::size_t lossy = lossy_.Idle();
  if (lossy + exact_.Idle() < pages) return;
  const std::size_t first = std::min(lossy, pages);
  lossy_.GiveUp(first);
  exact_.GiveUp(pages - first);
}

std::optional<ReservedSequence> EngineRunner::Reserve(const SequenceAsk& ask) {
  const std::span<const TokenId> prompt = ask.prompt;
  PrefixCache* prefixes = nullptr;
  if (keeps_prefixes_ && !ask.reads_all) {
    prefixes = ask.exact || engine_.exact() ? &exact_ : &lossy_;
  }
  Result<Session> session =
      Session::CreateWithoutRoom(engine_, static_cast<std::uint32_t>(ask.tokens));
  if (!session.ok()) return std::nullopt;  // others hold the slots
  Reservation reservation{.session = std::move(session).value(), .prefixes = prefixes};
  // Pages that it shares need no room; what is copied of others does.
  std::size_t cached = reservation.TakeCached(prompt);
  if (prefixes != nullptr && !reservation.session.HasRoomFree()) {
    cached += reservation.session.TakeFrom(*prefixes, prompt.first(prompt.size() - 1),
                                           Session::LastPage::kTake);
  }
  if (!reservation.session.ReserveRoom().ok()) return std::nullopt;
  cached += reservation.TakeCached(prompt);
  const SequenceId id = reservation.session.id();
  sessions_[id].emplace(std::move(reservation));
  return ReservedSequence{.id = id, .cached = cached};
}

std::size_t EngineRunner::Reservation::TakeCached(std::span<const TokenId> prompt) {
  return prefixes == nullptr ? 0 : session.TakeFrom(*prefixes, prompt.first(prompt.size() - 1));
}

std::size_t EngineRunner::TakeCached(SequenceId sequence, std::span<const TokenId> prompt) {
  return ReservationOf(sequence).TakeCached(prompt);
}

void EngineRunner::Release(SequenceId sequence) {
  Reservation& reservation = ReservationOf(sequence);
  if (reservation.prefixes != nullptr) {
    reservation.session.KeepIn(*reservation.prefixes, PrefixCache::Keeping::kAll);
  }
  sessions_[sequence].reset();
}

PrefixCacheState EngineRunner::prefix_cache() const {
  const std::size_t page = engine_.kv().page_positions();
  return {.kept = (exact_.pages() + lossy_.pages()) * page,
          .idle = (exact_.Idle() + lossy_.Idle()) * page,
          .free = engine_.kv().free_positions(),
          .page = page,
          .most = engine_.kv().pages() * page,
          .given_up = (exact_.counters().given_up + lossy_.counters().given_up) * page};
}

EngineRunner::Reservation& EngineRunner::ReservationOf(SequenceId sequence) {
  TROUPE_CHECK(sequence < sessions_.size() && sessions_[sequence].has_value());
  return *sessions_[sequence];
}

Status EngineRunner::CheckKeepsPrefixes(const std::string& path) const {
  if (keeps_prefixes_) return OkStatus();
  return Error(Code::kFailedPrecondition, "{}: the model was opened without a prefix cache", path);
}

Result<PrefixFileReport> EngineRunner::LoadPrefixes(const std::string& path, const MayGoOn& go_on) {
  TROUPE_RETURN_IF_ERROR(CheckKeepsPrefixes(path));
  return kept_.Load(path, go_on);
}

Status EngineRunner::SavePrefixes(const std::string& path, const MayGoOn& go_on) {
  TROUPE_RETURN_IF_ERROR(CheckKeepsPrefixes(path));
  return kept_.Save(path, go_on);
}

Status EngineRunner::Run(std::span<const PassRows> rows) {
  rows_.clear();
  costs_.clear();
  for (const PassRows& group : rows) {
    rows_.push_back({.sequence = &SessionOf(group.sequence),
                     .tokens = group.tokens,
                     .phase = group.phase,
                     .exact = group.exact,
                     .request = group.request,
                     .guessed = group.guessed,
                     .wanted = group.on_row         ? LogitsWanted::kAll
                               : group.wants_logits ? LogitsWanted::kLast
                                                    : LogitsWanted::kNone,
                     .on_row = group.on_row,
                     .embedding = group.embedding});
  }
  TROUPE_RETURN_IF_ERROR(engine_.Run(rows_));
  engine_.SettleUsage();
  for (const PassRows& group : rows) costs_.push_back(TakeCost(group));
  const auto has_guesses = [](const PassRows& group) { return group.guessed > 0; };
  if (std::ranges::none_of(rows, has_guesses)) KeepFullPages();
  return OkStatus();
}

void EngineRunner::KeepGuesses(std::span<const std::uint32_t> right) {
  engine_.KeepGuesses(right);
  KeepFullPages();
}

// Of the last Run's sequences: what their texts are known to begin with.
void EngineRunner::KeepFullPages() {
  for (const SequenceRows& rows : rows_) {
    Reservation& reservation = ReservationOf(rows.sequence->id());
    if (reservation.prefixes == nullptr) continue;
    reservation.session.KeepIn(*reservation.prefixes, PrefixCache::Keeping::kFullPages);
  }
}

// With what earlier passes of the request have cost that failed.
RowsCost EngineRunner::TakeCost(const PassRows& group) {
  const ModelConfig& config = engine_.config();
  const std::uint64_t layers =
      config.moe.routing.experts == 0 ? 0 : config.layers - config.moe.leading_dense;
  return {.expert_uses = group.tokens.size() * layers * config.moe.routing.top_k,
          .experts = engine_.TakeUsage(group.request)};
}

std::span<const float> EngineRunner::Logits(SequenceId sequence) const {
  return sessions_[sequence]->session.logits();
}

ExpertMap EngineRunner::LookAtExperts() {
  const ModelConfig& config = engine_.config();
  const TopExpertsParams& routing = config.moe.routing;
  if (routing.experts == 0) return {};
  const ExpertGrid grid{.layers = config.layers, .experts = routing.experts};
  Transformer& transformer = engine_.transformer();
  if (!heat_ && transformer.route_observer() == nullptr) {
    transformer.set_route_observer(&heat_.emplace(grid, routing.top_k));
  }
  const std::uint32_t first = config.moe.leading_dense;
  ExpertMap map{.first_layer = first,
                .layers = grid.layers - first,
                .experts = grid.experts,
                .places = engine_.ExpertPlaces(),
                .heat = {}};
  const auto dense = static_cast<std::ptrdiff_t>(std::size_t{first} * grid.experts);
  map.places.erase(map.places.begin(), map.places.begin() + dense);
  map.heat.resize(map.places.size());
  if (heat_) std::copy(heat_->Look().begin() + dense, heat_->Look().end(), map.heat.begin());
  return map;
}

}  // namespace troupe
