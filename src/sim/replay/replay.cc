#include "sim/replay/replay.h"

#include <algorithm>
#include <atomic>
#include <memory>
#include <optional>

#include "expert/cache/quotas.h"
#include "expert/forecast/oracle.h"
#include "sim/replay/future_uses.h"
#include "sim/replay/optimum_replay.h"

namespace troupe {
namespace {

// Passes that are read before all caches are asked them.
constexpr std::size_t kPasses = 256;
constexpr std::size_t kDemands = std::size_t{1} << 18;
constexpr std::size_t kScores = std::size_t{1} << 20;

// Passes that were read together.
struct PassesAtHand {
  std::vector<ReplayPass> all = std::vector<ReplayPass>(kPasses);
  std::size_t count = 0;

  std::span<const ReplayPass> span() const { return {all.data(), count}; }
};

Status ReadNext(TracePasses& source, PassesAtHand& passes) {
  std::size_t demands = 0, scores = 0;
  for (passes.count = 0; passes.count < kPasses && demands < kDemands && scores < kScores;
       ++passes.count) {
    ReplayPass& pass = passes.all[passes.count];
    TROUPE_ASSIGN_OR_RETURN(const bool more, source.Next(pass));
    if (!more) break;
    for (const auto& layer : pass.demands) demands += layer.size();
    for (const PassRoutes& layer : pass.routes) scores += layer.scores.size() + layer.chosen.size();
  }
  return OkStatus();
}

// One cache, and where in the passes at hand its oracle looks.
class Player {
 public:
  Player(const TraceHeader& header, const ReplaySpec& spec) : header_(header), spec_(spec) {}

  Status Make(const ReplayOptions& options, const FutureUses* uses) {
    if (spec_.policy == "optimum") {
      optimum_.emplace(header_, ShapeFor(header_, spec_), options.costs, uses->Future());
      return OkStatus();
    }
    ReplaySetup setup{.cache = ShapeFor(header_, spec_), .policy = nullptr, .predictor = nullptr};
    TROUPE_ASSIGN_OR_RETURN(setup.policy,
                            MakeEvictionPolicy(spec_.policy, setup.cache, spec_.echo));
    TROUPE_ASSIGN_OR_RETURN(const auto layers_foreseen, LayersForeseen(spec_.predictor));
    if (layers_foreseen) {
      if (spec_.substitution != "exact") {
        return InvalidArgument("'{}' foresees what the router chose, expected no substitution",
                               spec_.predictor);
      }
      setup.foreseen =
          ForeseenFuture{.layers_ahead = *layers_foreseen,
                         .future = [this](std::uint64_t step) { return Foresee(step); }};
    } else if (spec_.predictor == "oracle") {
      setup.predictor = std::make_unique<Oracle>([this] { return NextStep(); });
    } else if (WorthPrefetch::IsMeant(spec_.predictor)) {
      if (!CanPredict(header_, spec_.predictor)) {
        return InvalidArgument(
            "'{}' needs the scores of all experts, the trace lacks them; --trace-scores all "
            "records them",
            spec_.predictor);
      }
      setup.by_worth = true;
      if (options.score_tables != nullptr) setup.score_tables = *options.score_tables;
      TROUPE_ASSIGN_OR_RETURN(setup.predictor, MakePredictor(WorthPrefetch::kForPrompts,
                                                             header_.grid(), header_.top_k));
    } else {
      TROUPE_ASSIGN_OR_RETURN(setup.predictor,
                              MakePredictor(spec_.predictor, header_.grid(), header_.top_k));
    }
    setup.prefetch.governed = spec_.governed;
    setup.costs = options.costs;
    if (setup.policy->wants_scores() && !header_.all_scores) {
      return InvalidArgument(
          "policy '{}' needs the scores of all experts, the trace has {}; "
          "--trace-scores all records them",
          spec_.policy, header_.scores == ScoreKind::kNone ? "none" : "those of the chosen ones");
    }
    if (spec_.substitution != "exact") {
      TROUPE_ASSIGN_OR_RETURN(setup.substitution,
                              ParseSubstitution(spec_.substitution, options.material,
                                                {.most_tokens = options.substitution_tokens}));
      if (setup.substitution->NeedsLowCopies()) {
        return InvalidArgument("'{}': a trace has no copies of fewer bits", spec_.substitution);
      }
    }
    needs_routes_ = setup.substitution.has_value() || setup.policy->wants_scores() ||
                    setup.by_worth || options.costs.second_lane_seconds.has_value();
    replay_.emplace(header_, std::move(setup));
    return OkStatus();
  }

  // `next` are those after them, as far as they are known.
  void Play(std::span<const ReplayPass> passes, std::span<const ReplayPass> next) {
    if (optimum_) {
      for (const ReplayPass& pass : passes) optimum_->Play(pass);
      return;
    }
    passes_ = passes;
    next_ = next;
    for (const ReplayPass& pass : passes) {
      pass_ = &pass;
      step_ = 0;
      replay_->Play(pass);
    }
    played_ += passes.size();
  }
  bool needs_routes() const { return needs_routes_; }
  ReplayOutcome outcome() const {
    return {.spec = spec_, .result = optimum_ ? optimum_->result() : replay_->result()};
  }

 private:
  // The oracle asks for a step when its layer is next, and never beyond the pass under way.
  std::optional<Oracle::Step> NextStep() {
    if (step_ == pass_->demands.size()) return std::nullopt;
    const std::size_t l = step_++;
    return Oracle::Step{.layer = header_.moe_layers[l], .chosen = pass_->demands[l]};
  }

  std::optional<ForeseenLoads::Step> Foresee(std::uint64_t step) const {
    const std::size_t layers = header_.moe_layers.size();
    const std::uint64_t pass = step / layers - played_;
    if (pass >= passes_.size() + next_.size()) return std::nullopt;
    const ReplayPass& of = pass < passes_.size() ? passes_[pass] : next_[pass - passes_.size()];
    return ForeseenLoads::Step{.layer = header_.moe_layers[step % layers],
                               .demands = of.demands[step % layers]};
  }

  const TraceHeader& header_;
  ReplaySpec spec_;
  std::optional<CacheReplay> replay_;
  std::optional<OptimumReplay> optimum_;  // in its place
  bool needs_routes_ = false;
  std::span<const ReplayPass> passes_, next_;
  std::uint64_t played_ = 0;  // passes before them
  const ReplayPass* pass_ = nullptr;
  std::size_t step_ = 0;  // layers of the pass that the oracle has been told
};

// In all: a hundred times what the largest models have.
constexpr std::size_t kMostExperts = std::size_t{1} << 20;

constexpr Bytes kMostTables = 4_GiB;  // no model needs as much, a hostile header may

Status CheckTables(ExpertGrid grid, const std::string& predictor) {
  const Bytes tables =
      WorthPrefetch::IsMeant(predictor)
          ? WorthPrefetch::BytesFor(grid) + PredictorBytes(WorthPrefetch::kForPrompts, grid)
          : PredictorBytes(predictor, grid);
  if (tables <= kMostTables) return OkStatus();
  return Error(Code::kResourceExhausted,
               "'{}' takes {} of tables for {} layers of {} experts, at most {} allowed", predictor,
               ToString(tables), grid.layers, grid.experts, ToString(kMostTables));
}

Status CheckSpecs(const TraceHeader& header, const std::vector<ReplaySpec>& specs) {
  if (header.grid().Count() > kMostExperts) {
    return InvalidArgument("{} layers of {} experts, at most {} experts in all can be replayed",
                           header.layers, header.experts, kMostExperts);
  }
  for (const ReplaySpec& spec : specs) {
    if (spec.slots == 0) return InvalidArgument("a cache of no slots, expected at least 1");
    TROUPE_RETURN_IF_ERROR(CheckTables(header.grid(), spec.predictor));
    if (spec.predictor != "none" && spec.policy == "optimum") {
      return InvalidArgument(
          "the optimum is one of caches that load what is asked for, expected no "
          "predictor beside it, found '{}'",
          spec.predictor);
    }
    if (spec.substitution != "exact" && spec.policy == "optimum") {
      return InvalidArgument(
          "the optimum is one of what the trace asks for, expected no substitution beside it, "
          "found '{}'",
          spec.substitution);
    }
    if (spec.floor != 0 && (spec.per_layer || spec.floor < 0 || spec.floor > 1)) {
      return InvalidArgument(
          "a floor of {} of an even part, expected 0 to 1, and one pool for all layers",
          spec.floor);
    }
    if (spec.shallow > header.moe_layers.size()) {
      return InvalidArgument("{} layers to be filled first, the trace has {}", spec.shallow,
                             header.moe_layers.size());
    }
  }
  return OkStatus();
}

}  // namespace

std::vector<std::string> ReplayPredictorNames() {
  return {"none", "scores", "previous", "eap", "oracle"};
}

Status CheckReplayPredictor(const std::string& name) {
  TROUPE_ASSIGN_OR_RETURN(const auto layers, LayersForeseen(name));
  if (layers || std::ranges::count(ReplayPredictorNames(), name) > 0) return OkStatus();
  return InvalidArgument(
      "'{}', expected none, scores, previous, eap, oracle, oracle:N or oracle:unlimited", name);
}

bool CanReplay(const TraceHeader& header, const std::string& policy) {
  if (policy == "optimum" || header.all_scores) return true;
  const auto made = MakeEvictionPolicy(policy, {.grid = {1, 1}, .slots = 1, .quotas = {1}});
  return made.ok() && !(*made)->wants_scores();
}

bool CanPredict(const TraceHeader& header, std::string_view predictor) {
  return header.all_scores || !WorthPrefetch::IsMeant(predictor);
}

std::uint32_t SlotsFor(const TraceHeader& header, double share) {
  const auto all = static_cast<double>(header.moe_layers.size() * header.experts);
  return std::max(1u, static_cast<std::uint32_t>(share * all + 0.5));
}

CacheShape ShapeFor(const TraceHeader& header, const ReplaySpec& spec) {
  CacheShape shape{.grid = header.grid(), .slots = spec.slots, .quotas = {}};
  // Shares for the layers that are recorded, put to where they are in the model.
  const ExpertGrid recorded{.layers = static_cast<std::uint32_t>(header.moe_layers.size()),
                            .experts = header.experts};
  if (!spec.per_layer) {
    shape.floor = FloorOf(recorded.layers, spec.slots, spec.floor);
    return shape;
  }
  const std::vector<std::uint32_t> shares =
      ShallowQuotas(recorded, 0, spec.slots, spec.spare, spec.shallow);
  shape.quotas.resize(header.layers);
  for (std::size_t i = 0; i < shares.size(); ++i) shape.quotas[header.moe_layers[i]] = shares[i];
  return shape;
}

Result<std::vector<ReplayOutcome>> Replay(TraceReader& reader, const std::vector<ReplaySpec>& specs,
                                          const ReplayOptions& options, ThreadPool& pool) {
  const TraceHeader& header = reader.header();
  TROUPE_RETURN_IF_ERROR(CheckSpecs(header, specs));
  std::optional<FutureUses> uses;
  if (std::ranges::find(specs, "optimum", &ReplaySpec::policy) != specs.end()) {
    TracePasses passes(reader, options.group);
    TROUPE_RETURN_IF_ERROR(passes.Skip(options.skip));
    TROUPE_ASSIGN_OR_RETURN(FutureUses known, FutureUses::Of(header, passes));
    uses.emplace(std::move(known));
    reader.Rewind();
  }
  std::vector<std::unique_ptr<Player>> players;
  bool with_routes = false;
  for (const ReplaySpec& spec : specs) {
    players.push_back(std::make_unique<Player>(header, spec));
    TROUPE_RETURN_IF_ERROR(players.back()->Make(options, uses ? &*uses : nullptr));
    with_routes = with_routes || players.back()->needs_routes();
  }
  TracePasses source(reader, options.group, with_routes);
  TROUPE_RETURN_IF_ERROR(source.Skip(options.skip));
  PassesAtHand now, next;
  TROUPE_RETURN_IF_ERROR(ReadNext(source, next));
  std::uint64_t before = 0;  // bytes of the trace that all have played
  while (next.count > 0) {
    std::swap(now, next);
    const std::uint64_t end = reader.position();
    TROUPE_RETURN_IF_ERROR(ReadNext(source, next));
    std::atomic<std::size_t> played = 0;
    pool.Run(players.size(), [&](std::size_t i, std::size_t thread) {
      players[i]->Play(now.span(), next.span());
      const auto part = static_cast<double>(++played) / static_cast<double>(players.size());
      if (thread != 0 || !options.progress) return;  // the caller is the first of the threads
      options.progress(static_cast<double>(before) + part * static_cast<double>(end - before),
                       reader.file_bytes());
    });
    before = end;
  }
  std::vector<ReplayOutcome> outcomes;
  for (const auto& player : players) outcomes.push_back(player->outcome());
  return outcomes;
}

}  // namespace troupe
