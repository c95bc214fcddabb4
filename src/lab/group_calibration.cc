#include "lab/group_calibration.h"

#include <algorithm>
#include <utility>
#include <vector>

#include "expert/gate/group_distillation.h"
#include "expert/gate/group_scores_reference.h"
#include "expert/substitution/coactivations.h"
#include "kernels/rms_norm.h"
#include "model/group_router.h"
#include "model/route_observer.h"
#include "model/stream_observer.h"

namespace troupe {
namespace {

// Keeps each layer's gate inputs, as its router reads them, and the router's scores.
class GateRecorder final : public StreamObserver, public RouteObserver {
 public:
  explicit GateRecorder(Engine& engine)
      : config_(engine.config()),
        weights_(engine.weights()),
        transformer_(engine.transformer()),
        inputs_(config_.layers),
        scores_(config_.layers) {}
  ~GateRecorder() override { Watch(false); }
  GateRecorder(const GateRecorder&) = delete;
  GateRecorder& operator=(const GateRecorder&) = delete;

  void Watch(bool watches) {
    transformer_.set_observer(watches ? this : nullptr);
    transformer_.set_route_observer(watches ? this : nullptr);
  }

  void Saw(std::uint32_t layer, StreamPlace place, const float* rows, std::size_t tokens) override {
    if (place != StreamPlace::kGateInput || !config_.IsMoeLayer(layer)) return;
    std::vector<float>& inputs = inputs_[layer];
    const std::size_t width = config_.width;
    for (std::size_t t = 0; t < tokens; ++t) {
      inputs.resize(inputs.size() + width);
      RmsNorm(rows + t * width, weights_.layers[layer].RouterNorm(), config_.norm_epsilon,
              inputs.data() + inputs.size() - width, width);
    }
  }
  void PassBegins(const PassFacts&) override {}
  void Routed(std::uint32_t layer, std::span<const ExpertChoice>,
              std::span<const float> scores) override {
    scores_[layer].insert(scores_[layer].end(), scores.begin(), scores.end());
  }
  void PassEnded() override {}

  GateSamples Of(std::uint32_t layer) const {
    return {.width = config_.width,
            .experts = config_.moe.routing.experts,
            .inputs = inputs_[layer],
            .scores = scores_[layer]};
  }

 private:
  const ModelConfig& config_;
  const ModelWeights& weights_;
  Transformer& transformer_;
  std::vector<std::vector<float>> inputs_, scores_;  // [layer]
};

// Of tokens that are learned from: what is reported must not have had a say in the groups either.
ExpertGroups GroupsBy(const GateSamples& learn, std::uint32_t groups, std::uint32_t top_k) {
  const auto experts = static_cast<std::uint32_t>(learn.experts);
  Coactivations counts({.layers = 1, .experts = experts});
  for (std::size_t t = 0; t < learn.tokens(); ++t) {
    const std::span<const float> scores = learn.Scores(t);
    counts.Add(0, BestReference(std::vector<double>(scores.begin(), scores.end()), top_k));
  }
  return GroupExperts(experts, groups, [&counts](std::uint32_t a, std::uint32_t b) {
    return counts.Together(0, a, b);
  });
}

// Where the windows that are recorded begin.
std::vector<std::size_t> WindowsOf(std::size_t tokens, std::size_t window, std::size_t most) {
  const std::size_t all = (tokens + window - 1) / window;
  const std::size_t wanted = std::clamp<std::size_t>(most / window, 1, all);
  std::vector<std::size_t> begins;
  for (std::size_t i = 0; i < wanted; ++i) begins.push_back(i * all / wanted * window);
  return begins;
}

Status Record(Session& session, std::span<const TokenId> text,
              const GroupCalibrationOptions& options, GateRecorder& recorder) {
  const std::size_t begin = options.begin ? 1 : 0;
  const std::size_t window =
      std::min({options.window, session.room() - begin, options.most_tokens});
  const std::vector<std::size_t> begins = WindowsOf(text.size(), window, options.most_tokens);
  for (std::size_t i = 0; i < begins.size(); ++i) {
    session.Truncate(0);
    if (options.begin) TROUPE_RETURN_IF_ERROR(session.FeedPrompt({&*options.begin, 1}));
    recorder.Watch(true);
    const std::span<const TokenId> part =
        text.subspan(begins[i], std::min(window, text.size() - begins[i]));
    for (std::size_t at = 0; at < part.size(); at += options.together) {
      TROUPE_RETURN_IF_ERROR(
          session.FeedPrompt(part.subspan(at, std::min(options.together, part.size() - at))));
    }
    recorder.Watch(false);
    if (options.progress) options.progress(i + 1, begins.size());
  }
  return OkStatus();
}

std::uint32_t UsualLooked(const GroupGateFile& file, double agreement) {
  const GateAgreement mean = file.MeanAgreement();
  std::uint32_t looked = file.gate.LeastLooked(file.top_k);
  while (looked + 1 < file.gate.groups && mean.by_looked[looked - 1].joint < agreement) ++looked;
  return looked;
}

}  // namespace

Status CheckGroupsFor(const ModelConfig& config, std::uint32_t groups) {
  TROUPE_RETURN_IF_ERROR(GroupRouter::CheckModel(config));
  const TopExpertsParams& routing = config.moe.routing;
  if (groups < 2 || groups > routing.experts) {
    return InvalidArgument("{} groups of {} experts, 2 to {} expected", groups, routing.experts,
                           routing.experts);
  }
  const std::uint32_t least = routing.experts / groups;
  if ((routing.top_k + least - 1) / least >= groups) {
    return InvalidArgument(
        "{} groups of {} experts, and a token uses {}: every group would be looked into", groups,
        routing.experts, routing.top_k);
  }
  return OkStatus();
}

Bytes GroupCalibrationBytes(const ModelConfig& config, const GroupCalibrationOptions& options) {
  const std::uint64_t layers = config.layers - config.moe.leading_dense;
  const std::size_t tokens = options.most_tokens;
  const std::size_t experts = config.moe.routing.experts;
  // Vectors that grow take half as much again at most times; the gates themselves are few rows.
  const std::uint64_t recorded = layers * tokens * (config.width + experts) * sizeof(float);
  return Bytes(2 * recorded) + DistillationBytes(tokens, config.width, options.groups) +
         Bytes(layers * options.groups * config.width * sizeof(float)) +
         Coactivations::BytesFor({.layers = 1, .experts = static_cast<std::uint32_t>(experts)});
}

Result<GroupGateFile> CalibrateGroups(Session& session, Engine& engine,
                                      std::span<const TokenId> text,
                                      const GroupCalibrationOptions& options) {
  const ModelConfig& config = engine.config();
  TROUPE_RETURN_IF_ERROR(CheckGroupsFor(config, options.groups));
  if (text.size() < kLeastSamples) {
    return InvalidArgument("a text of {} tokens, at least {} expected to learn groups from",
                           text.size(), kLeastSamples);
  }
  GroupCalibrationOptions asked = options;
  asked.together = std::min<std::size_t>(options.together, engine.plan().memory.chunk);
  GateRecorder recorder(engine);
  TROUPE_RETURN_IF_ERROR(Record(session, text, asked, recorder));

  const std::uint32_t top_k = config.moe.routing.top_k;
  GroupGateFile file{.model_layers = config.layers, .top_k = top_k};
  file.gate = {
      .width = config.width, .experts = config.moe.routing.experts, .groups = options.groups};
  for (std::uint32_t layer = 0; layer < config.layers; ++layer) {
    if (!config.IsMoeLayer(layer)) continue;
    const GateSamples samples = recorder.Of(layer);
    const SampleParts parts = Divide(samples);
    GroupGateLayer made{.layer = layer, .groups = GroupsBy(parts.learn, options.groups, top_k)};
    DistilledGate learned = DistillGroups(parts.learn, parts.choose, made.groups);
    made.weights = std::move(learned.weights);
    made.bias = std::move(learned.bias);
    file.agreement.push_back(MeasureAgreement(parts.report, made, top_k));
    file.gate.layers.push_back(std::move(made));
    file.tokens = samples.tokens();
  }
  file.looked = UsualLooked(file, options.usual_agreement);
  return file;
}

}  // namespace troupe
