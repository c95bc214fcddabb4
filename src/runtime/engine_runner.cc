#include "runtime/engine_runner.h"

#include <algorithm>

namespace troupe {

EngineRunner::EngineRunner(Engine& engine)
    : engine_(engine), sessions_(engine.plan().memory.sequences) {}

EngineRunner::~EngineRunner() {
  Transformer& transformer = engine_.transformer();
  if (heat_ && transformer.route_observer() == &*heat_) transformer.set_route_observer(nullptr);
}

RunnerLimits EngineRunner::limits() const {
  return {.rows = engine_.plan().memory.chunk,
          .sequences = engine_.plan().memory.sequences,
          .context = engine_.plan().context()};
}

std::optional<SequenceId> EngineRunner::Reserve(std::size_t tokens) {
  Result<Session> session = Session::Create(engine_, static_cast<std::uint32_t>(tokens));
  if (!session.ok()) return std::nullopt;  // others hold the room
  const SequenceId id = session->id();
  sessions_[id].emplace(std::move(session).value());
  return id;
}

void EngineRunner::Release(SequenceId sequence) {
  TROUPE_CHECK(sessions_[sequence].has_value());
  sessions_[sequence].reset();
}

Session& EngineRunner::SessionOf(SequenceId sequence) {
  TROUPE_CHECK(sequence < sessions_.size() && sessions_[sequence].has_value());
  return *sessions_[sequence];
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
                     .wanted = group.wants_logits ? LogitsWanted::kLast : LogitsWanted::kNone});
  }
  TROUPE_RETURN_IF_ERROR(engine_.Run(rows_));
  engine_.SettleUsage();
  for (const PassRows& group : rows) costs_.push_back(TakeCost(group));
  return OkStatus();
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
  return sessions_[sequence]->logits();
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
