#include "model/group_router.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

#include "expert/gate/group_scores_reference.h"
#include "kernels/rms_norm.h"
#include "model/stream_observer.h"
#include "model/tiny_model_for_test.h"
#include "testing/test_seed.h"

namespace troupe {
namespace {

using testing::HasSubstr;

GroupGate RandomGate(const ModelConfig& config, std::uint32_t groups, Rng& rng) {
  GroupGate gate{.width = config.width, .experts = config.moe.routing.experts, .groups = groups};
  for (std::uint32_t layer = config.moe.leading_dense; layer < config.layers; ++layer) {
    std::vector<std::uint32_t> order(gate.experts);
    std::iota(order.begin(), order.end(), 0u);
    std::ranges::shuffle(order, rng);
    GroupGateLayer made{.layer = layer, .groups = ExpertGroups(groups)};
    for (std::size_t i = 0; i < order.size(); ++i) made.groups[i % groups].push_back(order[i]);
    for (auto& group : made.groups) std::ranges::sort(group);
    std::ranges::sort(made.groups);
    const double size = 1 / std::sqrt(config.width);
    for (std::size_t i = 0; i < groups * config.width; ++i) {
      made.weights.push_back(static_cast<float>(size * rng.Normal()));
    }
    for (std::uint32_t g = 0; g < groups; ++g) {
      made.bias.push_back(static_cast<float>(rng.Normal()));
    }
    gate.layers.push_back(std::move(made));
  }
  return gate;
}

// What went into the layers' routers, and what came out.
class Watcher final : public StreamObserver, public RouteObserver {
 public:
  struct Layer {
    std::uint32_t layer = 0;
    std::vector<float> stream, scores;
    std::vector<ExpertChoice> chosen;
  };
  void Saw(std::uint32_t, StreamPlace place, const float* rows, std::size_t tokens) override {
    if (place == StreamPlace::kGateInput) stream_ = rows, tokens_ = tokens;
  }
  void PassBegins(const PassFacts&) override { layers.clear(); }
  void Routed(std::uint32_t layer, std::span<const ExpertChoice> chosen,
              std::span<const float> scores) override {
    layers.push_back({.layer = layer,
                      .stream = {stream_, stream_ + tokens_ * width},
                      .scores = {scores.begin(), scores.end()},
                      .chosen = {chosen.begin(), chosen.end()}});
  }
  void PassEnded() override {}

  std::size_t width = 0;
  std::vector<Layer> layers;

 private:
  const float* stream_ = nullptr;
  std::size_t tokens_ = 0;
};

class GroupRouterOf : public testing::TestWithParam<const char*> {
 protected:
  static constexpr std::uint32_t kGroups = 4, kLooked = 3;
  static constexpr std::size_t kChunk = 32;

  GroupRouter Router(ModelPart& part, GroupFusion fusion = GroupFusion::kJoint,
                     std::uint32_t looked = kLooked) {
    const GroupRouter::Shape shape{
        .choice = {.by_groups = true, .looked = looked, .fusion = fusion},
        .layers = model_.AllLayers(),
        .chunk = kChunk};
    return GroupRouter::Create(model_.config(), part.weights(), gate_, shape).value();
  }

  Rng rng_{TestSeed()};
  const TinyModel model_{GetParam()};
  const GroupGate gate_ = RandomGate(model_.config(), kGroups, rng_);
};

// The router's softmax in double, of its input as the model has it. An F32 product of n columns
// errs by n ulp of the sum of its parts at most, which is added to `error`.
std::vector<float> RouterScores(const Linear& router, std::span<const float> input, double& error) {
  std::vector<double> logits(router.weight.rows);
  std::vector<float> row(input.size());
  for (std::size_t e = 0; e < logits.size(); ++e) {
    UnpackRow(router.weight, e, std::span<float>(row));
    double parts = 0;
    for (std::size_t c = 0; c < row.size(); ++c) {
      logits[e] += double{row[c]} * input[c];
      parts += std::abs(double{row[c]} * input[c]);
    }
    if (router.bias != nullptr) logits[e] += router.bias[e];
    error = std::max(error, static_cast<double>(row.size()) * 0x1p-24 * parts);
  }
  const double most = *std::ranges::max_element(logits);
  double sum = 0;
  for (double& logit : logits) sum += logit = std::exp(logit - most);
  std::vector<float> scores;
  for (const double logit : logits) scores.push_back(static_cast<float>(logit / sum));
  return scores;
}

TEST_P(GroupRouterOf, ScoresAndChoicesAreThoseOfTheSlowReference) {
  const ModelConfig& config = model_.config();
  const TopExpertsParams& routing = config.moe.routing;
  for (const GroupFusion fusion : {GroupFusion::kJoint, GroupFusion::kProduct}) {
    ModelPart part(model_, model_.AllLayers());
    GroupRouter router = Router(part, fusion);
    Watcher watcher;
    watcher.width = config.width;
    part.transformer().set_observer(&watcher);
    part.transformer().set_route_observer(&watcher);
    part.transformer().set_groups(&router);
    const auto tokens = model_.Tokens(24, rng_);
    KvSequence sequence = part.NewSequence(24);
    ASSERT_TRUE(part.Forward({.cache = &sequence, .tokens = tokens}).ok());
    ASSERT_EQ(watcher.layers.size(), gate_.layers.size());
    std::size_t undecided = 0, all = 0;
    for (std::size_t l = 0; l < gate_.layers.size(); ++l) {
      const Watcher::Layer& seen = watcher.layers[l];
      const LayerWeights& w = part.weights().layers[seen.layer];
      ASSERT_EQ(w.moe.router.weight.type, TensorType::kF32);
      for (std::size_t t = 0; t < tokens.size(); ++t, ++all) {
        std::vector<float> input(config.width);
        RmsNorm(seen.stream.data() + t * config.width, w.RouterNorm(), config.norm_epsilon,
                input.data(), config.width);
        double error = 0;
        const std::vector<float> of_router = RouterScores(w.moe.router, input, error);
        const std::vector<double> shares = GroupSharesReference(gate_.layers[l], input);
        const GroupScores truth = GroupScoresReference(gate_.layers[l].groups,
                                                       {true, kLooked, fusion}, shares, of_router);
        // Of a softmax of logits that err, and its exponentials: relative.
        const double tolerance = 4 * error + 1e-5;
        const double last = shares[truth.looked.back()];
        const double next = shares[BestReference(shares, kLooked + 1).back()];
        if (last - next < tolerance) {
          ++undecided;
          continue;
        }
        const std::span<const float> scores(seen.scores.data() + t * routing.experts,
                                            routing.experts);
        for (std::size_t e = 0; e < routing.experts; ++e) {
          EXPECT_NEAR(scores[e], truth.scores[e], tolerance * truth.scores[e] + 1e-9)
              << "layer " << seen.layer << ", token " << t << ", expert " << e;
        }
        const auto wanted = ChosenReference(gate_.layers[l].groups, truth, routing.top_k);
        const double least = truth.scores[wanted.back()];
        for (std::size_t k = 0; k < routing.top_k; ++k) {
          const std::uint32_t chosen = seen.chosen[t * routing.top_k + k].expert;
          EXPECT_GE(truth.scores[chosen], least * (1 - tolerance));
          const auto of_group = [&](std::uint32_t g) {
            return std::ranges::binary_search(gate_.layers[l].groups[g], chosen);
          };
          EXPECT_TRUE(std::ranges::any_of(truth.looked, of_group));
        }
      }
    }
    EXPECT_LT(undecided, all / 10);
  }
}

TEST_P(GroupRouterOf, RowsGetTheBytesThatTheyGetAlone) {
  for (const GroupFusion fusion : {GroupFusion::kJoint, GroupFusion::kProduct}) {
    const auto tokens = model_.Tokens(20, rng_);
    std::vector<LogitRow> alone;
    for (const std::size_t threads : {1, 3}) {
      ModelPart part(model_, model_.AllLayers(), {.sequences = 3, .threads = threads});
      GroupRouter router = Router(part, fusion);
      part.transformer().set_groups(&router);
      if (alone.empty()) alone = part.LogitsOneByOne(tokens);
      const auto others = model_.Tokens(9, rng_);
      KvSequence first = part.NewSequence(20), second = part.NewSequence(9);
      const RowGroup batch[] = {
          {.cache = &second, .tokens = others, .exact = true},
          {.cache = &first, .tokens = std::span(tokens).first(17), .phase = Phase::kPrompt}};
      ASSERT_TRUE(part.Forward(batch).ok());
      EXPECT_EQ(part.Logits(9, 17), std::vector(alone.begin(), alone.begin() + 17));
      ASSERT_TRUE(part.Forward({.cache = &first, .tokens = std::span(tokens).subspan(17)}).ok());
      EXPECT_EQ(part.Logits(0, 3), std::vector(alone.begin() + 17, alone.end()));
    }
  }
}

TEST_P(GroupRouterOf, ExactRowsBesideOthersGetTheRoutersBytesAndOthersDoNot) {
  ModelPart plain(model_, model_.AllLayers());
  const auto tokens = model_.Tokens(12, rng_), others = model_.Tokens(8, rng_);
  const auto exact = plain.LogitsOneByOne(tokens);
  ModelPart part(model_, model_.AllLayers(), {.sequences = 3});
  GroupRouter router = Router(part);
  part.transformer().set_groups(&router);
  KvSequence first = part.NewSequence(8), second = part.NewSequence(12),
             third = part.NewSequence(12);
  const RowGroup batch[] = {{.cache = &first, .tokens = others},
                            {.cache = &second, .tokens = tokens, .exact = true},
                            {.cache = &third, .tokens = tokens}};
  ASSERT_TRUE(part.Forward(batch).ok());
  EXPECT_EQ(part.Logits(8, 12), exact);
  EXPECT_NE(part.Logits(20, 12), exact);
}

TEST_P(GroupRouterOf, CountsWhatItMultipliedAndWhatTheRouterHas) {
  ModelPart part(model_, model_.AllLayers());
  GroupRouter router = Router(part);
  part.transformer().set_groups(&router);
  const auto tokens = model_.Tokens(5, rng_);
  KvSequence sequence = part.NewSequence(10);
  ASSERT_TRUE(part.Forward({.cache = &sequence, .tokens = tokens, .exact = true}).ok());
  EXPECT_EQ(router.done(), GroupRouting());
  ASSERT_TRUE(part.Forward({.cache = &sequence, .tokens = tokens}).ok());
  const std::uint64_t rows = 5 * gate_.layers.size();
  EXPECT_EQ(router.done().decisions, rows);
  EXPECT_EQ(router.done().rows_of_router, rows * gate_.experts);
  const std::uint64_t of_group = gate_.experts / kGroups;  // all of the same size
  EXPECT_EQ(router.done().rows_multiplied, rows * (kGroups + kLooked * of_group));
  EXPECT_GT(part.transformer().gate_seconds(), 0);
}

TEST_P(GroupRouterOf, AGateWhoseArithmeticBreaksDownFailsThePass) {
  GroupGate gate = gate_;
  for (float& weight : gate.layers.back().weights) weight = weight < 0 ? -3e38f : 3e38f;
  ModelPart part(model_, model_.AllLayers());
  GroupRouter router =
      GroupRouter::Create(
          model_.config(), part.weights(), gate,
          {.choice = {true, kLooked}, .layers = model_.AllLayers(), .chunk = kChunk})
          .value();
  part.transformer().set_groups(&router);
  const auto tokens = model_.Tokens(3, rng_);
  KvSequence sequence = part.NewSequence(3);
  const Status status = part.Forward({.cache = &sequence, .tokens = tokens});
  EXPECT_EQ(status.code(), Code::kDataLoss);
  EXPECT_THAT(status.message(), HasSubstr("not finite numbers"));
  EXPECT_EQ(sequence.length(), 0u);
}

// Experts in memory whose source hears what gates say.
class Listener final : public ExpertSource {
 public:
  explicit Listener(const ModelWeights& weights) : resident_(weights) {}
  void OnRouted(std::uint32_t, std::span<const float> row, std::span<ExpertChoice>) override {
    scores.assign(row.begin(), row.end());
  }
  void Ask(const ExpertBatch& batch) override { resident_.Ask(batch); }
  Result<std::span<const ReadyExpert>> Take(bool wait) override { return resident_.Take(wait); }
  std::uint32_t forecast_layers() const override { return 1; }
  void OnGateScores(std::uint32_t, const GateScores& all) override {
    said.assign(all.scores.begin(), all.scores.end());
  }
  ExpertUsage usage() const override { return {}; }

  std::vector<float> scores, said;  // of the last layer

 private:
  ResidentExperts resident_;
};

TEST_P(GroupRouterOf, ForecastsLearnFromLogitsThatFitTheScores) {
  ModelPart part(model_, model_.AllLayers());
  Listener listener(part.weights());
  part.Use(listener);
  GroupRouter router = Router(part);
  part.transformer().set_groups(&router);
  const auto tokens = model_.Tokens(1, rng_);
  KvSequence sequence = part.NewSequence(1);
  ASSERT_TRUE(part.Forward({.cache = &sequence, .tokens = tokens}).ok());
  ASSERT_EQ(listener.said.size(), gate_.experts);
  double sum = 0;
  for (const float logit : listener.said) sum += std::exp(double{logit});
  for (std::size_t e = 0; e < gate_.experts; ++e) {
    EXPECT_NEAR(std::exp(double{listener.said[e]}) / sum, listener.scores[e], 1e-5);
  }
}

INSTANTIATE_TEST_SUITE_P(Shapes, GroupRouterOf,
                         testing::Values("tiny-qwen2moe", "tiny-qwen3moe", "tiny-gpt-oss",
                                         "tiny-gemma4"),
                         [](const auto& shape) {
                           std::string name = shape.param;
                           std::ranges::replace(name, '-', '_');
                           return name;
                         });

TEST(GroupRouterModels, RoutersThatAreNoPlainSoftmaxAreRefused) {
  const auto message = [](const char* shape) {
    return GroupRouter::CheckModel(TinyModel(shape).config()).message();
  };
  EXPECT_TRUE(GroupRouter::CheckModel(TinyModel("tiny-olmoe").config()).ok());
  EXPECT_THAT(message("tiny-deepseek2"), HasSubstr("groups of experts by itself"));
  EXPECT_THAT(message("tiny-glm4moe"), HasSubstr("chooses by sigmoids"));
  EXPECT_THAT(message("tiny-ernie4_5-moe"), HasSubstr("chooses by biased scores"));
  EXPECT_THAT(message("tiny-llama"), HasSubstr("no experts"));
}

}  // namespace
}  // namespace troupe
