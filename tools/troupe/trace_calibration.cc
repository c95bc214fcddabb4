#include "troupe/trace_calibration.h"

#include <algorithm>
#include <array>
#include <filesystem>
#include <map>
#include <utility>
#include <vector>

#include "base/check.h"
#include "expert/forecast/activation_path.h"
#include "expert/forecast/miss_chance.h"
#include "expert/prefetch/score_learner.h"
#include "lab/buddy_recorder.h"
#include "store/model_fingerprint.h"

namespace troupe {
namespace {

constexpr std::array kTraceShares = {0.125, 0.25, 0.375, 0.5, 0.625, 0.75};  // as from a text

TraceHeader ShapeOfTraces(const ModelConfig& config) {
  TraceHeader header{.layers = config.layers,
                     .experts = config.moe.routing.experts,
                     .top_k = config.moe.routing.top_k};
  for (std::uint32_t layer = 0; layer < config.layers; ++layer) {
    if (config.IsMoeLayer(layer)) header.moe_layers.push_back(layer);
  }
  return header;
}

// Takes a trace's tokens one after the other.
class RouteLearner {
 public:
  RouteLearner(const ModelConfig& config, bool scores)
      : grid_{.layers = config.layers, .experts = config.moe.routing.experts},
        top_k_(config.moe.routing.top_k),
        first_layer_(config.moe.leading_dense),
        recorder_(config),
        paths_(grid_, top_k_),
        told_(grid_.layers) {
    routes_ = {.grid = grid_, .first_layer = first_layer_, .experts_per_token = top_k_, .ids = {}};
    if (scores) scores_.emplace(grid_, top_k_, first_layer_);
  }

  std::uint64_t tokens() const { return routes_.tokens(); }

  void Add(const TraceHeader& header, const TraceBlock& block, std::uint64_t most) {
    std::size_t token = 0;
    for (const TraceSegment& segment : block.segments) {
      for (std::uint32_t t = 0; t < segment.tokens; ++t, ++token) {
        if (tokens() == most) return;
        const Place place{segment.sequence, segment.position + t};
        if (scores_) LearnScores(header, block, token, place, segment.place);
        AddToken(header, block, token, place);
      }
    }
  }

  // It is of no use any more.
  TraceCalibration Learned(const BuddyOptions& buddies) && {
    TraceCalibration learned{.profile = {.tokens = tokens(),
                                         .layers = grid_.layers,
                                         .experts = grid_.experts,
                                         .paths = paths_.Seen()},
                             .buddies = recorder_.Profile(buddies),
                             .foresight = {},
                             .scores = {}};
    if (scores_) learned.scores = std::move(*scores_).Learned();
    std::vector<double> covered(grid_.layers);
    double paths = 0, previous = 0;
    for (std::uint32_t layer = first_layer_; layer < grid_.layers; ++layer) {
      covered[layer] = Share(told_[layer].by_paths, tokens());
      paths += told_[layer].by_paths;
      previous += told_[layer].by_previous;
    }
    const std::uint64_t layers = grid_.layers - first_layer_;
    // The first layer has no path to it, and no sequence a token before its first.
    learned.foresight = {.by_paths = Share(paths, (layers - 1) * tokens()),
                         .by_previous = Share(previous, layers * continued_)};
    AddShallow(covered, learned.profile);
    return learned;
  }

 private:
  struct Place {
    std::uint32_t sequence = 0, position = 0;
  };
  struct Told {
    double by_paths = 0, by_previous = 0;  // experts that tokens chose
  };

  double Share(double experts, std::uint64_t times) const {
    return times == 0 ? 0 : experts / static_cast<double>(times * top_k_);
  }

  void AddToken(const TraceHeader& header, const TraceBlock& block, std::size_t token,
                Place place) {
    const bool follows =
        place.sequence == last_.sequence && place.position == last_.position + 1 && tokens() > 0;
    if (!follows) previous_.clear();
    continued_ += follows ? 1 : 0;
    last_ = place;
    recorder_.PassBegins(OneGroup(first_layer_, Phase::kDecode, 1, place.position));
    std::vector<std::uint16_t> now;
    for (std::size_t l = 0; l < header.moe_layers.size(); ++l) {
      const std::uint32_t layer = header.moe_layers[l];
      const std::span<const std::uint16_t> ids = block.Ids(header, l, token);
      const std::span<const float> scores = block.Scores(header, l, token);
      Judge(layer, l, ids);
      std::vector<ExpertChoice> chosen;
      std::vector<ExpertDemand> demands;
      for (std::size_t i = 0; i < ids.size(); ++i) {
        chosen.push_back({.expert = ids[i], .weight = scores.empty() ? 1.0f : scores[i]});
        demands.push_back({.expert = ids[i], .tokens = 1});
      }
      recorder_.Routed(layer, chosen, {});
      paths_.OnChosen({layer, demands});
      now.insert(now.end(), ids.begin(), ids.end());
    }
    recorder_.PassEnded();
    routes_.ids.insert(routes_.ids.end(), now.begin(), now.end());
    previous_ = std::move(now);
  }

  // `at`: the sequence's among those that were held at once. What was lost or left out between two
  // tokens of a sequence begins it anew.
  void LearnScores(const TraceHeader& header, const TraceBlock& block, std::size_t token,
                   Place place, std::uint16_t at) {
    Place& next = next_[at];
    const bool follows = next.sequence == place.sequence && next.position == place.position;
    next = {place.sequence, place.position + 1};
    scores_->TokenBegins(follows ? place.position : 0, at);
    for (std::size_t l = 0; l < header.moe_layers.size(); ++l) {
      const std::span<const std::uint16_t> ids = block.Ids(header, l, token);
      const std::vector<std::uint32_t> chosen(ids.begin(), ids.end());
      scores_->OnLayer(header.moe_layers[l], block.AllScores(header, l, token), chosen, {});
    }
  }

  void Judge(std::uint32_t layer, std::size_t moe_layer, std::span<const std::uint16_t> ids) {
    const std::vector<Guess> guesses =
        moe_layer == 0 ? std::vector<Guess>() : paths_.Predict(layer, /*ahead=*/1, {});
    const auto before = previous_.empty()
                            ? std::span<const std::uint16_t>()
                            : std::span(previous_).subspan(moe_layer * top_k_, top_k_);
    for (const std::uint16_t id : ids) {
      const auto guess = std::ranges::find(guesses, id, &Guess::expert);
      told_[layer].by_paths += guess != guesses.end() && guess->expected ? 1 : 0;
      told_[layer].by_previous += std::ranges::find(before, id) != before.end() ? 1 : 0;
    }
  }

  // Of what forecasts cover paths stand in for: a trace tells of no others.
  void AddShallow(std::span<const double> covered, ModelProfile& profile) const {
    const std::uint32_t layers = grid_.layers - first_layer_;
    for (const double share : kTraceShares) {
      const auto slots = static_cast<std::uint32_t>(share * layers * grid_.experts);
      if (slots == 0) continue;
      const std::uint32_t spare = std::min(top_k_, slots / 4);
      const std::uint32_t most = std::min(layers / 2, (slots - spare) / grid_.experts);
      profile.shallow.push_back(
          {.share = share, .costs = CostsOfShallow(routes_, covered, slots, spare, most)});
    }
  }

  ExpertGrid grid_;
  std::uint32_t top_k_, first_layer_;
  BuddyRecorder recorder_;
  ActivationPath paths_;
  std::vector<Told> told_;  // [layer]
  RecordedRoutes routes_;
  Place last_;
  std::vector<std::uint16_t> previous_;  // [layer with experts][k] of the token before, if any
  std::uint64_t continued_ = 0;          // tokens that had one
  std::optional<ScoreLearner> scores_;
  std::map<std::uint16_t, Place> next_;  // token of the sequence that is held there
};

}  // namespace

Status CheckTraceOf(const TraceReader& reader, const GgufModel& model, const ModelConfig& config) {
  if (config.moe.routing.experts == 0) {
    return InvalidArgument("{}: the model has no experts", model.path());
  }
  TROUPE_ASSIGN_OR_RETURN(const ModelFingerprint fingerprint, FingerprintModel(model));
  const TraceHeader& found = reader.header();
  TraceHeader expected = ShapeOfTraces(config);
  expected.fingerprint = ToString(fingerprint);
  // A published trace says its model's name alone, and files call the same model what they like.
  expected.model = found.fingerprint.empty() ? found.model
                   : config.name.empty() ? std::filesystem::path(model.path()).filename().string()
                                         : config.name;
  if (Status same = SameModel(expected, found); !same.ok()) {
    return std::move(same).WithContext(std::string(reader.name()) + ": a trace of another model");
  }
  return OkStatus();
}

Result<TraceCalibration> LearnRoutes(TraceReader& reader, const ModelConfig& config,
                                     const TraceCalibrationOptions& options) {
  constexpr Bytes kMost = 4_GiB;  // of the tables: no model needs as much, a hostile header may
  const ExpertGrid grid = reader.header().grid();
  const Bytes of_scores = options.scores ? ScoreLearner::BytesFor(grid) : Bytes();
  if (const Bytes tables = Coactivations::BytesFor(grid) + of_scores; tables > kMost) {
    return Error(Code::kResourceExhausted,
                 "{}: {} of tables for {} layers of {} experts, at most {} allowed", reader.name(),
                 ToString(tables), grid.layers, grid.experts, ToString(kMost));
  }
  if (options.buddies.weighted && reader.header().scores == ScoreKind::kNone) {
    return InvalidArgument("{}: has no scores, by which --weighted counts", reader.name());
  }
  TROUPE_CHECK(!options.scores || reader.header().all_scores);
  RouteLearner learner(config, options.scores);
  while (learner.tokens() < options.most_tokens) {
    TROUPE_ASSIGN_OR_RETURN(const std::optional<TraceBlock> block, reader.Next());
    if (!block) break;
    learner.Add(reader.header(), *block, options.most_tokens);
  }
  if (learner.tokens() == 0) {
    return DataLoss("{}: no tokens to learn from, expected some", reader.name());
  }
  TraceCalibration learned = std::move(learner).Learned(options.buddies);
  // Without scores every token spreads alike, and a tau learned from that would close all of them.
  if (reader.header().scores == ScoreKind::kNone) {
    for (BuddyLayer& layer : learned.buddies.layers) std::ranges::fill(layer.entropy, 0.0);
  }
  return learned;
}

Status CheckReplaceable(const std::string& path) {
  std::error_code ignored;
  if (!std::filesystem::exists(path, ignored)) return OkStatus();
  const Result<ModelProfile> found = LoadProfile(path);
  if (!found.ok() || found->learned.empty()) return OkStatus();
  return Error(Code::kFailedPrecondition,
               "{}: was learned from a text and corrects the forecasts of gates, which nothing "
               "learned from a trace can; -o FILE with --buddies-output FILE leaves it as it is",
               path);
}

Status CheckTablesReplaceable(const std::string& path, const ScoreTablesOf& of) {
  std::error_code ignored;
  if (!std::filesystem::exists(path, ignored)) return OkStatus();
  const Result<ScoreTables> found = LoadScoreTables(path, of);
  if (!found.ok() || !MissChance::KnowsGates(*found)) return OkStatus();
  return Error(Code::kFailedPrecondition,
               "{}: was learned from a text and knows what gates that are asked early are worth, "
               "which nothing learned from a trace can; --scores-output FILE, or none, leaves it "
               "as it is",
               path);
}

}  // namespace troupe
