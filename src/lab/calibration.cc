#include "lab/calibration.h"

#include <algorithm>
#include <array>
#include <vector>

#include "expert/forecast/activation_path.h"
#include "expert/forecast/gate_guesses.h"
#include "expert/forecast/lookahead_gate.h"
#include "lab/score_recorder.h"
#include "model/gate_probe.h"

namespace troupe {
namespace {

constexpr std::array kShares = {0.125, 0.25, 0.375, 0.5, 0.625, 0.75};

// Watches one pass after the other, layer by layer.
class Watcher final : public StreamObserver {
 public:
  // What gates say early is recorded, too.
  Watcher(Engine& engine, ScoreRecorder& recorder)
      : recorder_(recorder),
        config_(engine.config()),
        probe_(config_, engine.weights(), engine.pool()),
        grid_{.layers = config_.layers, .experts = config_.moe.routing.experts},
        top_k_(config_.moe.routing.top_k),
        first_layer_(config_.moe.leading_dense),
        study_(config_.layers, top_k_),
        lookahead_(grid_, top_k_),
        paths_(grid_, top_k_),
        corrected_(config_.layers),
        pending_(config_.layers) {
    routes_ = {.grid = grid_, .first_layer = first_layer_, .experts_per_token = top_k_, .ids = {}};
  }

  void Saw(std::uint32_t layer, StreamPlace place, const float* rows, std::size_t tokens) override {
    const std::span<const float> stream(rows, tokens * config_.width);
    if (place == StreamPlace::kAttentionInput) {
      attention_before_ = std::exchange(attention_, {stream.begin(), stream.end()});
      return;
    }
    if (config_.IsMoeLayer(layer)) SawGate(layer, stream, tokens);
    gate_before_.assign(stream.begin(), stream.end());
  }

  // After every pass.
  void PassEnds() {
    const std::size_t layers = config_.layers - first_layer_;
    const std::size_t tokens = pass_ids_.size() / (layers * top_k_);
    for (std::size_t t = 0; t < tokens; ++t) {
      for (std::size_t l = 0; l < layers; ++l) {
        const auto from =
            pass_ids_.begin() + static_cast<std::ptrdiff_t>((l * tokens + t) * top_k_);
        routes_.ids.insert(routes_.ids.end(), from, from + top_k_);
        std::vector<ExpertDemand> chosen;
        for (const std::uint32_t expert : std::span(from, top_k_)) {
          chosen.push_back({.expert = expert, .tokens = 1});
        }
        paths_.OnChosen({first_layer_ + static_cast<std::uint32_t>(l), chosen});
      }
    }
    pass_ids_.clear();
  }

  ModelProfile Profile() const {
    ModelProfile profile{.tokens = routes_.tokens(),
                         .layers = grid_.layers,
                         .experts = grid_.experts,
                         .learned = lookahead_.correction().Learned(),
                         .paths = paths_.Seen()};
    std::vector<double> covered(grid_.layers);
    for (std::uint32_t layer = first_layer_; layer < grid_.layers; ++layer) {
      ProfiledLayer out{.layer = layer, .plain = {}, .corrected = {}};
      for (const ForecastPlace place : kForecastPlaces) {
        out.plain[static_cast<std::size_t>(place)] = study_.Of(layer, place);
      }
      for (std::size_t i = 0; i < kMostLayersAhead; ++i) out.corrected[i] = Mean(layer, i);
      covered[layer] = out.corrected[0].expected;
      profile.forecasts.push_back(out);
    }
    AddShallow(profile, covered);
    return profile;
  }

 private:
  void SawGate(std::uint32_t layer, std::span<const float> stream, std::size_t tokens) {
    const GateScores answer = probe_.Ask(layer, stream.data(), tokens);
    said_.assign(answer.scores.begin(), answer.scores.end());
    const GateScores said{.experts = grid_.experts, .scores = said_};
    for (std::size_t t = 0; t < tokens; ++t) {
      const std::vector<std::uint32_t> chosen = TopOf(said.Row(t), top_k_);
      pass_ids_.insert(pass_ids_.end(), chosen.begin(), chosen.end());
    }
    Judge(layer, said);
    const auto add = [&](ForecastPlace place, const std::vector<float>& early) {
      if (early.size() != stream.size()) return;
      study_.Add(layer, place, early, stream, probe_.Ask(layer, early.data(), tokens), said);
    };
    add(ForecastPlace::kOwnAttention, attention_);
    if (layer > 0) {
      add(ForecastPlace::kAttentionBefore, attention_before_);
      add(ForecastPlace::kGateBefore, gate_before_);
    }
    lookahead_.OnGateScores(layer, said);
    Predict(layer, stream, tokens);
  }

  void Predict(std::uint32_t layer, std::span<const float> stream, std::size_t tokens) {
    for (std::uint32_t ahead = 1; ahead <= lookahead_.forecast_layers(); ++ahead) {
      if (layer + ahead >= grid_.layers) return;
      const GateScores forecast = probe_.Ask(layer + ahead, stream.data(), tokens);
      pending_[layer + ahead][ahead - 1] = lookahead_.PredictRows(layer + ahead, ahead, forecast);
      if (!recorder_.records()) continue;
      recorder_.AskedEarly(layer + ahead, ahead,
                           lookahead_.Corrected(layer + ahead, ahead, forecast).scores);
    }
  }

  // The corrected forecasts for this layer, made before it was learned from.
  void Judge(std::uint32_t layer, const GateScores& said) {
    for (std::size_t i = 0; i < kMostLayersAhead; ++i) {
      const std::vector<std::vector<Guess>> rows = std::exchange(pending_[layer][i], {});
      if (rows.size() != said.rows()) continue;
      for (std::size_t r = 0; r < rows.size(); ++r) {
        ForecastQuality& sums = corrected_[layer][i];
        ++sums.tokens;
        for (const std::uint32_t chosen : TopOf(said.Row(r), top_k_)) {
          const auto guess = std::ranges::find(rows[r], chosen, &Guess::expert);
          if (guess == rows[r].end()) continue;
          sums.guessed += 1.0 / top_k_;
          sums.expected += guess->expected ? 1.0 / top_k_ : 0;
        }
      }
    }
  }

  ForecastQuality Mean(std::uint32_t layer, std::size_t distance) const {
    ForecastQuality mean = corrected_[layer][distance];
    if (mean.tokens == 0) return mean;
    mean.expected /= static_cast<double>(mean.tokens);
    mean.guessed /= static_cast<double>(mean.tokens);
    return mean;
  }

  void AddShallow(ModelProfile& profile, std::span<const double> covered) const {
    const std::uint32_t layers = grid_.layers - first_layer_;
    for (const double share : kShares) {
      const auto slots = static_cast<std::uint32_t>(share * layers * grid_.experts);
      const std::uint32_t spare = std::min(top_k_, slots / 4);
      const std::uint32_t most =
          std::min(layers / 2, (slots - spare) / std::max(1u, grid_.experts));
      profile.shallow.push_back(
          {.share = share, .costs = CostsOfShallow(routes_, covered, slots, spare, most)});
    }
  }

  using Sums = std::array<ForecastQuality, kMostLayersAhead>;
  using Pending = std::array<std::vector<std::vector<Guess>>, kMostLayersAhead>;  // rows of guesses

  ScoreRecorder& recorder_;
  const ModelConfig& config_;
  GateProbe probe_;
  ExpertGrid grid_;
  std::uint32_t top_k_, first_layer_;
  ForecastStudy study_;
  LookaheadGate lookahead_;
  ActivationPath paths_;
  std::vector<Sums> corrected_;
  std::vector<Pending> pending_;  // by the layer that they are for
  RecordedRoutes routes_;
  std::vector<std::uint32_t> pass_ids_;  // [layer][token][k]
  std::vector<float> attention_, attention_before_, gate_before_, said_;
};

// Observers for as long as the block lasts.
class Watching {
 public:
  Watching(Transformer& transformer, StreamObserver& stream, RouteObserver* routes)
      : transformer_(transformer) {
    transformer_.set_observer(&stream);
    transformer_.set_route_observer(routes);
  }
  ~Watching() {
    transformer_.set_observer(nullptr);
    transformer_.set_route_observer(nullptr);
  }

 private:
  Transformer& transformer_;
};

}  // namespace

Bytes CalibrationBytes(const ModelConfig& config, const CalibrationOptions& options, bool scores) {
  const ExpertGrid grid{.layers = config.layers, .experts = config.moe.routing.experts};
  // The tables and the copy that is kept of them; every choice, in a vector that grows.
  const std::uint64_t choices = std::uint64_t{options.most_tokens} *
                                (config.layers - config.moe.leading_dense) *
                                config.moe.routing.top_k;
  return 2 * (LookaheadGate::BytesFor(grid) + ActivationPath::BytesFor(grid)) +
         Bytes(2 * choices * sizeof(std::uint32_t)) +
         (scores ? ScoreRecorder::BytesFor(grid, options.together) : Bytes());
}

Result<ModelProfile> Calibrate(Session& session, Engine& engine, std::span<const TokenId> text,
                               const CalibrationOptions& options) {
  if (engine.config().moe.routing.experts == 0) {
    return InvalidArgument("{}: the model has no experts", engine.path());
  }
  if (engine.config().encoder) {
    return Error(
        Code::kUnimplemented,
        "{}: an encoder-decoder, of which nothing is learned from a text: an answer's rows "
        "go through other layers than a text's",
        engine.path());
  }
  text = text.first(std::min(text.size(), options.most_tokens));
  if (text.empty()) return InvalidArgument("the text has no tokens to learn from");
  session.Truncate(0);
  const std::size_t begin = options.begin ? 1 : 0;
  const std::size_t window = std::min(options.window, session.room() - begin);
  // The watcher has to see each pass end, and a small budget makes them shorter.
  const std::size_t together = std::min<std::size_t>(options.together, engine.plan().memory.chunk);
  const ExpertGrid grid{.layers = engine.config().layers,
                        .experts = engine.config().moe.routing.experts};
  ScoreRecorder recorder(options.scores, options.routes, grid);
  Watcher watcher(engine, recorder);
  for (std::size_t at = 0; at < text.size(); at += window) {
    session.Truncate(0);
    if (options.begin) TROUPE_RETURN_IF_ERROR(session.FeedPrompt({&*options.begin, 1}));
    const std::span<const TokenId> part = text.subspan(at, std::min(window, text.size() - at));
    recorder.TextBegins();
    const Watching watching(engine.transformer(), watcher, &recorder);
    for (std::size_t i = 0; i < part.size(); i += together) {
      TROUPE_RETURN_IF_ERROR(
          session.FeedPrompt(part.subspan(i, std::min(together, part.size() - i))));
      watcher.PassEnds();
      recorder.Learn();
    }
    if (options.progress) options.progress(at + part.size(), text.size());
  }
  return watcher.Profile();
}

}  // namespace troupe
