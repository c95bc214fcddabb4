#include "runtime/engine.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "gguf/reader.h"
#include "model/route_observer.h"
#include "runtime/model_profile.h"
#include "runtime/plan_model.h"
#include "runtime/session.h"
#include "store/model_fingerprint.h"
#include "testing/temp_folder.h"

namespace troupe {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

constexpr const char* kModel = TROUPE_SOURCE_DIR "/models/tiny-qwen2moe-q8_0.gguf";

// Keeps what the passes said of themselves.
class Passes final : public RouteObserver {
 public:
  void PassBegins(const PassFacts& pass) override { passes.push_back(pass); }
  void Routed(std::uint32_t, std::span<const ExpertChoice>, std::span<const float>) override {}
  void PassEnded() override { ++ended; }

  std::vector<PassFacts> passes;
  std::size_t ended = 0;
};

TEST(EngineTest, APassSaysWhoseRowsItRuns) {
  const auto engine = Engine::Open(kModel, {.threads = 1, .context = 64, .sequences = 2}).value();
  Passes seen;
  engine->transformer().set_route_observer(&seen);
  Session first = Session::Create(*engine).value(), second = Session::Create(*engine).value();
  const std::vector<std::int32_t> tokens = {5, 6, 7};
  ASSERT_TRUE(second.FeedPrompt(tokens).ok());
  const SequenceRows rows[] = {
      {.sequence = &first, .tokens = tokens, .phase = Phase::kPrompt, .exact = true},
      {.sequence = &second, .tokens = std::span(tokens).first(1), .request = 77}};
  ASSERT_TRUE(engine->Run(rows).ok());
  ASSERT_EQ(seen.passes.size(), 2u);
  EXPECT_EQ(seen.ended, 2u);
  EXPECT_THAT(seen.passes[1].groups, ElementsAre(RowGroupFacts{.sequence = 0,
                                                               .request = first.request(),
                                                               .phase = Phase::kPrompt,
                                                               .exact = true,
                                                               .position = 0,
                                                               .rows = 3},
                                                 RowGroupFacts{.sequence = 1,
                                                               .request = 77,
                                                               .phase = Phase::kDecode,
                                                               .exact = false,
                                                               .position = 3,
                                                               .rows = 1}));
  engine->transformer().set_route_observer(nullptr);
}

TEST(EngineTest, RunsTheLayersOfItsPlan) {
  const auto engine = Engine::Open(kModel, {.threads = 1, .context = 64}).value();
  EXPECT_EQ(engine->plan().layers, (LayerRange{0, 8}));
  EXPECT_EQ(engine->transformer().layers(), engine->plan().layers);
}

TEST(EngineTest, ABatchOfDecodesUsesAsManyExpertsAsTheDecodesAlone) {
  const auto engine = Engine::Open(kModel, {.threads = 1, .context = 64, .sequences = 3}).value();
  std::vector<Session> sessions;
  std::vector<SequenceRows> rows;
  const std::int32_t token = 9;
  for (int i = 0; i < 3; ++i) sessions.push_back(Session::Create(*engine).value());
  for (Session& session : sessions) rows.push_back({.sequence = &session, .tokens = {&token, 1}});
  ASSERT_TRUE(engine->Run(rows).ok());
  EXPECT_EQ(engine->transformer().expert_uses(), 3u * 8 * 4);
  // The same token at the same place: one question for each of its experts.
  EXPECT_EQ(engine->expert_usage().hits, 8u * 4);
  EXPECT_TRUE(std::ranges::equal(sessions[0].logits(), sessions[2].logits()));
}

TEST(EngineTest, ASecondModelsPlanCountsWhatTheFirstMayStillTouch) {
  EngineOptions options{.threads = 1, .context = 2048, .sequences = 32};
  const Bytes alone = PlanModel(kModel, options)->plan.memory.program;
  auto first = Engine::Open(kModel, options).value();
  const Bytes untouched = first->plan().memory.kv_cache;  // nothing was fed
  ASSERT_GT(untouched, 50_MiB);
  EXPECT_GT(PlanModel(kModel, options)->plan.memory.program, alone + untouched);
  const auto second = Engine::Open(kModel, options);
  ASSERT_TRUE(second.ok());
  EXPECT_GT(PlanModel(kModel, options)->plan.memory.program, alone + 2 * untouched);
  first.reset();
  EXPECT_LT(PlanModel(kModel, options)->plan.memory.program, alone + 2 * untouched);
}

TEST(EngineTest, APoolThatTheBudgetCutShortRefusesAReservationAndNoPass) {
  EngineOptions options{.threads = 1, .context = 2048, .sequences = 3, .chunk = 8};
  options.offload.slots = 2;
  const MemoryPlan three = PlanModel(kModel, options)->plan.memory;
  ASSERT_GT(three.kv_cache, 6_MiB) << "the budget below would do for eight";
  // For six, but for what the process has come to hold meanwhile: a sanitizer's takes steps of MiB.
  options.memory = three.total() + three.kv_cache;
  options.sequences = 8;
  const auto engine = Engine::Open(kModel, options);
  ASSERT_TRUE(engine.ok()) << engine.status().message();
  const MemoryPlan& plan = (*engine)->plan().memory;
  ASSERT_GE(plan.kv_positions, 2u * 2048);
  ASSERT_LT(plan.kv_positions, 8u * 2048);
  std::vector<Session> sessions;
  while (sessions.size() < plan.kv_positions / 2048) {
    sessions.push_back(Session::Create(**engine).value());
  }
  const auto refused = Session::Create(**engine);
  EXPECT_EQ(refused.status().code(), Code::kResourceExhausted);
  EXPECT_THAT(refused.status().message(), HasSubstr("are free"));
  for (Session& session : sessions) {
    EXPECT_TRUE(session.FeedPrompt(std::vector<std::int32_t>(40, 7)).ok());
  }
  sessions.pop_back();
  EXPECT_TRUE(Session::Create(**engine, 1000).ok());
}

// A profile by which, with a quarter of the experts in memory, it is best to keep one layer, or
// none.
std::string ProfileThatKeeps(const TempFolder& folder, std::uint32_t best) {
  const GgufModel file = GgufModel::Open(kModel).value();
  ModelProfile profile{.fingerprint = ToString(FingerprintModel(file).value()),
                       .text = "t",
                       .tokens = 1,
                       .layers = 8,
                       .experts = 32};
  profile.shallow = {{.share = 0.25,
                      .costs = {{.layers = 0, .misses = 3, .uncovered = best == 0 ? 1.0 : 2.0},
                                {.layers = 1, .misses = 3, .uncovered = best == 0 ? 2.0 : 1.0}}}};
  const std::string path = folder.PathOf("m.profile.json");
  EXPECT_TRUE(SaveProfile(profile, path).ok());
  return path;
}

struct KeptLayers {
  std::uint32_t planned = 0;
  std::vector<LayerHits> again;  // of a prompt that was read before
};

// In a cache of a quarter of the experts. The prompt asks every layer for more than its even share.
KeptLayers ReadTwice(const std::string& profile,
                     std::optional<std::uint32_t> shallow = std::nullopt) {
  EngineOptions options{.threads = 1, .context = 128};
  options.offload.slots = 8 * 32 / 4;
  options.offload.policy = "lru";
  options.offload.predictor = "none";
  options.offload.profile = profile;
  options.offload.shallow_layers = shallow;
  const auto engine = Engine::Open(kModel, options).value();
  std::vector<std::int32_t> prompt;
  for (std::int32_t i = 0; i < 96; ++i) prompt.push_back(3 + 29 * i % 200);
  const auto read = [&] {
    Session session = Session::Create(*engine).value();
    EXPECT_TRUE(session.FeedPrompt(prompt).ok());
    return engine->expert_usage().layers;
  };
  const std::vector<LayerHits> first = read();
  KeptLayers kept{.planned = engine->plan().shallow_layers, .again = read()};
  for (std::size_t layer = 0; layer < first.size(); ++layer) {
    kept.again[layer].asks -= first[layer].asks;
    kept.again[layer].hits -= first[layer].hits;
  }
  return kept;
}

TEST(EngineTest, KeepsTheFirstLayersThatItsProfileFoundBest) {
  const TempFolder folder;
  const KeptLayers kept = ReadTwice(ProfileThatKeeps(folder, 1));
  EXPECT_EQ(kept.planned, 1u);
  ASSERT_EQ(kept.again.size(), 8u);
  EXPECT_GT(kept.again[0].asks, 8u * 32 / 4 / 8) << "an even share would hold them, too";
  EXPECT_EQ(kept.again[0].hits, kept.again[0].asks);
  EXPECT_LT(kept.again[1].hits, kept.again[1].asks);
}

TEST(EngineTest, KeepsNoneWhereItsProfileFoundThatBestOrTheUserSaysSo) {
  const TempFolder folder;
  const std::string none = ProfileThatKeeps(folder, 0);
  for (const KeptLayers& kept :
       {ReadTwice(none), ReadTwice("none"), ReadTwice(ProfileThatKeeps(folder, 1), 0)}) {
    EXPECT_EQ(kept.planned, 0u);
    ASSERT_EQ(kept.again.size(), 8u);
    EXPECT_LT(kept.again[0].hits, kept.again[0].asks);
  }
  EXPECT_EQ(ReadTwice(none, 1).planned, 1u);
}

}  // namespace
}  // namespace troupe
