#include "runtime/engine_runner.h"

#include <algorithm>
#include <utility>

#include "base/check.h"
#include "runtime/draft_by_residents.h"

namespace troupe {
namespace {

// Tokens that a state must save a text to be worth its place.
constexpr std::size_t kLeastKnown = 32;
// Tokens before the end of a prompt, where a state is left: a chat's next turn may part from this
// one there, as templates end a prompt with what begins an answer, and write the answer otherwise
// afterwards.
constexpr std::size_t kNearEnd = 16;

}  // namespace

EngineRunner::EngineRunner(Engine& engine, bool keeps_prefixes)
    : engine_(engine),
      keeps_prefixes_(keeps_prefixes && !engine.config().encoder),
      exact_{.prefixes = PrefixCache(engine.kv()), .states = {}},
      lossy_{.prefixes = PrefixCache(engine.kv()), .states = {}},
      kept_(engine, exact_.prefixes, exact_.states),
      sessions_(engine.plan().memory.sequences) {
  if (engine_.draft() != nullptr) draft_.emplace(*engine_.draft());
  engine_.kv().OnShortage([this](std::size_t pages) { GiveUp(pages); });
  if (StatePool* const states = engine_.kv().states(); states != nullptr) {
    states->OnShortage([this](std::size_t places) { GiveUpStates(places); });
  }
}

EngineRunner::~EngineRunner() {
  engine_.kv().OnShortage({});
  if (engine_.kv().states() != nullptr) engine_.kv().states()->OnShortage({});
  Transformer& transformer = engine_.transformer();
  if (heat_ && transformer.route_observer() == &*heat_) transformer.set_route_observer(nullptr);
}

// Of a model with states nobody waits for a page that another one reads: it could go on behind it
// only if a state is left there.
RunnerLimits EngineRunner::limits() const {
  const bool shares_pages = keeps_prefixes_ && !engine_.config().HasState();
  const std::optional<EncoderConfig>& encoder = engine_.config().encoder;
  return {
      .rows = engine_.plan().memory.chunk,
      .sequences = engine_.plan().memory.sequences,
      .context = engine_.plan().context(),
      .cache_page = shares_pages ? static_cast<std::uint32_t>(engine_.kv().page_positions()) : 0,
      .guesses = engine_.MostGuesses(),
      .guesses_behind_prompts = !engine_.config().HasState(),
      .decoder_start = encoder ? std::optional<TokenId>(encoder->decoder_start) : std::nullopt,
      .longest_encoded = encoder ? LongestWholePrompt(engine_.plan()) : 0,
      .exact = engine_.exact(),
      .reads_experts = !engine_.plan().memory.all_resident};
}

// All or nothing: what a sequence still cannot begin with is better kept.
void EngineRunner::GiveUp(std::size_t pages) {
  const std::size_t lossy = lossy_.prefixes.Idle();
  if (lossy + exact_.prefixes.Idle() < pages) return;
  const std::size_t first = std::min(lossy, pages);
  lossy_.prefixes.GiveUp(first);
  exact_.prefixes.GiveUp(pages - first);
}

void EngineRunner::GiveUpStates(std::size_t places) {
  exact_.states.GiveUp(places - lossy_.states.GiveUp(places));
}

std::optional<ReservedSequence> EngineRunner::Reserve(const SequenceAsk& ask) {
  Left* left = nullptr;
  if (keeps_prefixes_ && !ask.reads_all) left = ask.exact || engine_.exact() ? &exact_ : &lossy_;
  Result<Session> session =
      Session::CreateWithoutRoom(engine_, static_cast<std::uint32_t>(ask.tokens));
  if (!session.ok()) return std::nullopt;  // others hold the slots
  Reservation reservation{.session = std::move(session).value(), .left = left};
  reservation.session.set_salt(std::string(ask.salt));
  const bool has_room = engine_.config().HasState() ? MakeRoomBehindState(reservation, ask)
                                                    : MakeRoom(reservation, ask.prompt);
  if (!has_room) return std::nullopt;
  const ReservedSequence reserved{.id = reservation.session.id(),
                                  .cached = reservation.session.tokens().size()};
  sessions_[reserved.id].emplace(std::move(reservation));
  return reserved;
}

bool EngineRunner::MakeRoom(Reservation& reservation, std::span<const TokenId> prompt) {
  // Pages that it shares need no room; what is copied of others does.
  reservation.TakeCached(prompt);
  if (reservation.left != nullptr && !reservation.session.HasRoomFree()) {
    reservation.session.TakeFrom(reservation.left->prefixes, prompt.first(prompt.size() - 1),
                                 Session::LastPage::kTake);
  }
  if (!reservation.session.ReserveRoom().ok()) return false;
  reservation.TakeCached(prompt);
  return true;
}

// Behind the furthest state that is kept, if the pages up to there are, too. Where another text is
// known further than that, the two part there, and others may come that part there as well: a state
// is to be kept at that place.
bool EngineRunner::MakeRoomBehindState(Reservation& reservation, const SequenceAsk& ask) {
  const std::span<const TokenId> prompt = ask.prompt;
  Session& session = reservation.session;
  if (reservation.left == nullptr) return session.ReserveRoom().ok();
  Left& left = *reservation.left;
  const std::span<const TokenId> shared = prompt.first(prompt.size() - 1);
  const std::size_t known = left.prefixes.KnownOf(shared, session.salt());
  const SavedState* found = left.states.Find(shared.first(known), session.salt());
  if (found != nullptr) session.TakeFrom(left.prefixes, shared.first(found->length()));
  if (!session.ReserveRoom().ok()) return false;
  // Making room may have cost states and pages.
  found = left.states.Find(shared.first(known), session.salt());
  if (found != nullptr && found->length() >= session.tokens().size()) {
    session.TakeFrom(left.prefixes, shared.first(found->length()));
  }
  if (found != nullptr && found->length() == session.tokens().size()) {
    session.Restore(*found);
  } else {
    session.Truncate(0);
    if (!session.ReserveRoom().ok()) return false;
  }
  const std::size_t begins = session.tokens().size();
  if (known >= begins + kLeastKnown) reservation.parting = known;
  if (ask.common >= begins + kLeastKnown) reservation.common = ask.common;
  if (prompt.size() >= begins + kLeastKnown + kNearEnd) {
    reservation.near_end = prompt.size() - kNearEnd;
  }
  return true;
}

std::size_t EngineRunner::Reservation::SaveAfter(std::size_t rows) const {
  const std::size_t read = session.tokens().size();
  for (const std::size_t at : {parting, common, near_end}) {
    if (at > read && at <= read + rows) return at - read;
  }
  return 0;
}

std::size_t EngineRunner::Reservation::TakeCached(std::span<const TokenId> prompt) {
  return left == nullptr ? 0 : session.TakeFrom(left->prefixes, prompt.first(prompt.size() - 1));
}

std::size_t EngineRunner::TakeCached(SequenceId sequence, std::span<const TokenId> prompt) {
  return ReservationOf(sequence).TakeCached(prompt);
}

void EngineRunner::Release(SequenceId sequence) {
  Reservation& reservation = ReservationOf(sequence);
  Session& session = reservation.session;
  if (reservation.left != nullptr) {
    session.KeepIn(reservation.left->prefixes, PrefixCache::Keeping::kAll);
    if (engine_.config().HasState()) {
      reservation.left->states.Keep(session.tokens(), session.LeaveState(), session.salt());
    }
  }
  sessions_[sequence].reset();
}

PrefixCacheState EngineRunner::prefix_cache() const {
  const std::size_t page = engine_.kv().page_positions();
  const PrefixCache &exact = exact_.prefixes, &lossy = lossy_.prefixes;
  return {.kept = (exact.pages() + lossy.pages()) * page,
          .idle = (exact.Idle() + lossy.Idle()) * page,
          .free = engine_.kv().free_positions(),
          .page = page,
          .most = engine_.kv().pages() * page,
          .given_up = (exact.counters().given_up + lossy.counters().given_up) * page};
}

EngineRunner::Reservation& EngineRunner::ReservationOf(SequenceId sequence) {
  TROUPE_CHECK(sequence < sessions_.size() && sessions_[sequence].has_value());
  return *sessions_[sequence];
}

Status EngineRunner::CheckKeepsPrefixes(const std::string& path) const {
  if (keeps_prefixes_) return OkStatus();
  if (engine_.config().encoder) {
    return Error(Code::kUnimplemented,
                 "{}: an encoder-decoder keeps no prefixes: what its encoder makes of a token "
                 "depends on those behind it",
                 path);
  }
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

std::size_t EngineRunner::KeepPrefix(TokenIds tokens, std::string_view salt, std::size_t most,
                                     const FillSequence& fill) {
  if (!keeps_prefixes_ || engine_.config().HasState()) return 0;
  const std::size_t page = engine_.kv().page_positions();
  KvSequence sequence = engine_.kv().NewSequence();
  const std::size_t known = exact_.prefixes.Extend(sequence, tokens, salt);
  const std::size_t more = std::max<std::size_t>(most / page, 1) * page;
  const std::size_t end = std::min(known + more, tokens.size());
  if (end == known || !sequence.Reserve(end).ok()) return known;
  fill(sequence, end);
  TROUPE_CHECK(sequence.length() == end);
  exact_.prefixes.Keep(sequence, tokens.first(end), PrefixCache::Keeping::kAll, salt);
  return end;
}

Status EngineRunner::Run(std::span<const PassRows> rows) {
  rows_.clear();
  costs_.clear();
  const bool has_state = engine_.config().HasState();
  for (const PassRows& group : rows) {
    const std::size_t save_after =
        has_state ? ReservationOf(group.sequence).SaveAfter(group.tokens.size()) : 0;
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
                     .embedding = group.embedding,
                     .save_after = save_after,
                     .unwanted = group.unwanted});
  }
  TROUPE_RETURN_IF_ERROR(engine_.Run(rows_));
  engine_.SettleUsage();
  for (const PassRows& group : rows) costs_.push_back(TakeCost(group));
  const auto has_guesses = [](const PassRows& group) { return group.guessed > 0; };
  if (std::ranges::none_of(rows, has_guesses)) KeepWhatWasRead();
  return OkStatus();
}

std::unique_ptr<DraftSequence> EngineRunner::DraftByResidents(SequenceId sequence,
                                                              RequestId request) {
  if (!engine_.DraftsByResidents()) return nullptr;
  return std::make_unique<ResidentDraft>(SessionOf(sequence), request);
}

void EngineRunner::KeepGuesses(std::span<const std::uint32_t> right) {
  engine_.KeepGuesses(right);
  KeepWhatWasRead();
}

// Of the last Run's sequences: what their texts are known to begin with.
void EngineRunner::KeepWhatWasRead() {
  for (const SequenceRows& rows : rows_) {
    KeepWhatWasRead(ReservationOf(rows.sequence->id()));
  }
}

void EngineRunner::KeepWhatWasRead(Reservation& reservation) {
  if (reservation.left == nullptr) return;
  Session& session = reservation.session;
  session.KeepIn(reservation.left->prefixes, PrefixCache::Keeping::kFullPages);
  if (!engine_.config().HasState()) return;
  if (std::optional<SavedState> saved = session.TakeSaved()) {
    const TokenIds tokens = session.tokens().first(saved->length());
    reservation.left->states.Keep(tokens, *std::move(saved), session.salt());
  }
}

// With what earlier passes of the request have cost that failed.
RowsCost EngineRunner::TakeCost(const PassRows& group) {
  const ModelConfig& config = engine_.config();
  // Rows of an encoder go through its layers alone, and all others through those behind it.
  const std::size_t encoded = SessionOf(group.sequence).EncodedOf(group.tokens.size());
  const std::uint32_t encoder = config.encoder ? config.encoder->layers : 0;
  const std::uint64_t uses =
      encoded * config.MoeLayersIn(0, encoder) +
      (group.tokens.size() - encoded) * config.MoeLayersIn(encoder, config.layers);
  RowsCost cost{.expert_uses = uses * config.moe.routing.top_k,
                .experts = engine_.TakeUsage(group.request)};
  if (engine_.routes_by_groups() && !group.exact) cost.experts.grouped = cost.expert_uses;
  return cost;
}

std::span<const float> EngineRunner::Logits(SequenceId sequence) const {
  return sessions_[sequence]->session.logits();
}

CardState EngineRunner::card() const {
  std::optional<CardReport> report = engine_.card_report();
  if (!report) return {};
  return {.name = std::move(report->name),
          .slots = report->slots,
          .held = report->held,
          .memory = report->memory};
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
  const std::vector<ExpertPlace> places = engine_.ExpertPlaces();
  ExpertMap map;
  map.experts = grid.experts;
  const auto append = [&](std::uint32_t layer, const auto& from, auto& to) {
    const auto begin = from.begin() + std::ptrdiff_t{layer} * grid.experts;
    to.insert(to.end(), begin, begin + grid.experts);
  };
  for (std::uint32_t layer = 0; layer < grid.layers; ++layer) {
    if (!config.IsMoeLayer(layer)) continue;
    map.layer_numbers.push_back(layer);
    append(layer, places, map.places);
  }
  map.layers = static_cast<std::uint32_t>(map.layer_numbers.size());
  map.heat.reserve(map.places.size());
  if (heat_) {
    const auto heat = heat_->Look();
    for (const std::uint32_t layer : map.layer_numbers) append(layer, heat, map.heat);
  }
  map.heat.resize(map.places.size());
  return map;
}

}  // namespace troupe
