#include "sim/replay/replay.h"

#include <algorithm>
#include <memory>
#include <optional>

#include "expert/cache/belady.h"
#include "expert/cache/quotas.h"
#include "expert/forecast/oracle.h"
#include "sim/replay/future_uses.h"

namespace troupe {
namespace {

// Passes that are read before all caches are asked them.
constexpr std::size_t kPasses = 256;
constexpr std::size_t kDemands = std::size_t{1} << 18;
constexpr std::size_t kScores = std::size_t{1} << 20;

// One cache, and where in the passes at hand its oracle looks.
class Player {
 public:
  Player(const TraceHeader& header, const ReplaySpec& spec) : header_(header), spec_(spec) {}

  Status Make(const ReplayOptions& options, const FutureUses* uses) {
    ReplaySetup setup{.cache = ShapeFor(header_, spec_), .policy = nullptr, .predictor = nullptr};
    if (spec_.policy == "optimum") {
      setup.policy = std::make_unique<Optimum>(header_.grid(), uses->Future());
    } else {
      TROUPE_ASSIGN_OR_RETURN(setup.policy, MakeEvictionPolicy(spec_.policy, setup.cache));
    }
    if (spec_.predictor == "oracle") {
      setup.predictor = std::make_unique<Oracle>([this] { return NextStep(); });
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
                    options.costs.second_lane_seconds.has_value();
    replay_.emplace(header_, std::move(setup));
    return OkStatus();
  }

  void Play(std::span<const ReplayPass> passes) {
    for (const ReplayPass& pass : passes) {
      pass_ = &pass;
      step_ = 0;
      replay_->Play(pass);
    }
  }
  bool needs_routes() const { return needs_routes_; }
  ReplayOutcome outcome() const { return {.spec = spec_, .result = replay_->result()}; }

 private:
  // The oracle asks for a step when its layer is next, and never beyond the pass under way.
  std::optional<Oracle::Step> NextStep() {
    if (step_ == pass_->demands.size()) return std::nullopt;
    const std::size_t l = step_++;
    return Oracle::Step{.layer = header_.moe_layers[l], .chosen = pass_->demands[l]};
  }

  const TraceHeader& header_;
  ReplaySpec spec_;
  std::optional<CacheReplay> replay_;
  bool needs_routes_ = false;
  const ReplayPass* pass_ = nullptr;
  std::size_t step_ = 0;  // layers of the pass that the oracle has been told
};

// In all: a hundred times what the largest models have.
constexpr std::size_t kMostExperts = std::size_t{1} << 20;

Status CheckSpecs(const TraceHeader& header, const std::vector<ReplaySpec>& specs) {
  if (header.grid().Count() > kMostExperts) {
    return InvalidArgument("{} layers of {} experts, at most {} experts in all can be replayed",
                           header.layers, header.experts, kMostExperts);
  }
  for (const ReplaySpec& spec : specs) {
    if (spec.slots == 0) return InvalidArgument("a cache of no slots, expected at least 1");
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
    if (spec.shallow > header.moe_layers.size()) {
      return InvalidArgument("{} layers to be filled first, the trace has {}", spec.shallow,
                             header.moe_layers.size());
    }
  }
  return OkStatus();
}

}  // namespace

std::vector<std::string> ReplayPredictorNames() { return {"none", "previous", "eap", "oracle"}; }

bool CanReplay(const TraceHeader& header, const std::string& policy) {
  if (policy == "optimum" || header.all_scores) return true;
  const auto made = MakeEvictionPolicy(policy, {.grid = {1, 1}, .slots = 1, .quotas = {1}});
  return made.ok() && !(*made)->wants_scores();
}

std::uint32_t SlotsFor(const TraceHeader& header, double share) {
  const auto all = static_cast<double>(header.moe_layers.size() * header.experts);
  return std::max(1u, static_cast<std::uint32_t>(share * all + 0.5));
}

CacheShape ShapeFor(const TraceHeader& header, const ReplaySpec& spec) {
  CacheShape shape{.grid = header.grid(), .slots = spec.slots, .quotas = {}};
  if (!spec.per_layer) return shape;
  // Shares for the layers that are recorded, put to where they are in the model.
  const ExpertGrid recorded{.layers = static_cast<std::uint32_t>(header.moe_layers.size()),
                            .experts = header.experts};
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
  std::vector<ReplayPass> passes(kPasses);
  for (bool more = true; more;) {
    std::size_t count = 0, demands = 0, scores = 0;
    for (; count < kPasses && demands < kDemands && scores < kScores; ++count) {
      TROUPE_ASSIGN_OR_RETURN(more, source.Next(passes[count]));
      if (!more) break;
      for (const auto& layer : passes[count].demands) demands += layer.size();
      for (const PassRoutes& layer : passes[count].routes) {
        scores += layer.scores.size() + layer.chosen.size();
      }
    }
    const std::span<const ReplayPass> batch(passes.data(), count);
    pool.Run(players.size(), [&](std::size_t i, std::size_t) { players[i]->Play(batch); });
  }
  std::vector<ReplayOutcome> outcomes;
  for (const auto& player : players) outcomes.push_back(player->outcome());
  return outcomes;
}

}  // namespace troupe
