#include "lab/group_calibration.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/rng.h"
#include "forge/synth.h"
#include "lab/gate_measurement.h"
#include "lab/lossy_switch.h"
#include "lab/quality_measurement.h"
#include "store/model_fingerprint.h"
#include "testing/temp_folder.h"
#include "testing/test_seed.h"

namespace troupe {
namespace {

using testing::HasSubstr;

class GroupCalibration : public testing::Test {
 protected:
  GroupCalibration() {
    EXPECT_TRUE(Synthesize(*FindShape("tiny-qwen2moe"), SynthOptions(), model_).ok());
  }

  std::unique_ptr<Engine> Open(const EngineOptions& options = {}) {
    return Engine::Open(model_, options).value();
  }
  EngineOptions ByGroups(std::uint32_t looked) {
    EngineOptions options;
    options.offload.gate.choice = {.by_groups = true, .looked = looked};
    return options;
  }
  std::vector<TokenId> Text(std::size_t count) {
    const auto engine = Open();
    Rng rng(TestSeed());
    std::vector<TokenId> tokens(count);
    for (TokenId& token : tokens) {
      token = static_cast<TokenId>(rng.Below(engine->config().vocabulary));
    }
    return tokens;
  }
  Result<GroupGateFile> Calibrate(const GroupCalibrationOptions& options,
                                  std::span<const TokenId> text) {
    const auto engine = Open();
    Session session = Session::Create(*engine).value();
    return CalibrateGroups(session, *engine, text, options);
  }
  void Save(GroupGateFile file) {
    file.fingerprint = ToString(FingerprintModel(GgufModel::Open(model_).value()).value());
    ASSERT_TRUE(SaveGroups(file, GroupsPathFor(model_)).ok());
  }

  TempFolder folder_;
  const std::string model_ = folder_.PathOf("m.gguf");
};

TEST_F(GroupCalibration, FindsMoreThanChanceInEveryLayerAndKeepsToTheTokensAskedFor) {
  const std::vector<TokenId> text = Text(900);
  const auto file = Calibrate({.groups = 4, .window = 50, .most_tokens = 400}, text);
  ASSERT_TRUE(file.ok()) << file.status().message();
  EXPECT_EQ(file->tokens, 400u);
  const auto engine = Open();
  ASSERT_EQ(file->gate.layers.size(), engine->config().layers);
  EXPECT_TRUE(Validate(file->gate).ok());
  for (const GateAgreement& of : file->agreement) {
    EXPECT_LT(of.divergence, of.of_nothing);
    // A quarter, half and three quarters of the experts would be found by chance.
    for (std::size_t looked = 1; looked < 4; ++looked) {
      EXPECT_GT(of.by_looked[looked - 1].joint, static_cast<double>(looked) / 4);
      EXPECT_GE(of.by_looked[looked - 1].best_groups, of.by_looked[looked - 1].joint - 0.02);
    }
    EXPECT_NEAR(of.by_looked[3].joint, 1, 1e-9);
  }
  EXPECT_GE(file->looked, file->gate.LeastLooked(4));
  EXPECT_LT(file->looked, 4u);
}

TEST_F(GroupCalibration, DoesNotDependOnHowManyTokensGoTogetherOrOnMemory) {
  const std::vector<TokenId> text = Text(120);
  const auto one = Calibrate({.groups = 2, .window = 60, .together = 1}, text);
  const auto many = Calibrate({.groups = 2, .window = 60, .together = 60}, text);
  ASSERT_TRUE(one.ok() && many.ok());
  EXPECT_EQ(*one, *many);
  EngineOptions little;
  little.offload.slots = 4;
  const auto engine = Open(little);
  Session session = Session::Create(*engine).value();
  EXPECT_EQ(CalibrateGroups(session, *engine, text, {.groups = 2, .window = 60}).value(), *one);
}

TEST_F(GroupCalibration, WhatCannotBeDividedIsRefused) {
  const std::vector<TokenId> text = Text(60);
  const auto message = [&](std::uint32_t groups) {
    return Calibrate({.groups = groups}, text).status().message();
  };
  EXPECT_THAT(message(0), HasSubstr("0 groups of 8 experts, 2 to 8 expected"));
  EXPECT_THAT(message(9), HasSubstr("9 groups of 8 experts, 2 to 8 expected"));
  EXPECT_THAT(Calibrate({.groups = 2}, std::span(text).first(5)).status().message(),
              HasSubstr("5 tokens, at least 10"));
  ModelConfig config = Open()->config();
  config.moe.routing.top_k = 6;
  EXPECT_THAT(CheckGroupsFor(config, 2).message(), HasSubstr("every group would be looked into"));
}

TEST_F(GroupCalibration, WhatAGateCostsIsMeasuredAgainstExactOnTheSameEngine) {
  const std::vector<TokenId> text = Text(500);
  Save(Calibrate({.groups = 4}, std::span(text).first(300)).value());
  const auto scored = std::span(text).subspan(300);
  const std::string logits = folder_.PathOf("exact.logits");
  const EvaluationOptions evaluation{.window = 50};
  {
    const auto exact = Open();
    ASSERT_TRUE(SaveExactLogits(*exact, scored, evaluation, logits).ok());
  }
  const LogitsReader reference = LogitsReader::OpenAndUnlink(logits).value();
  double before = 1e9;
  for (const std::uint32_t looked : {2u, 3u}) {
    const auto engine = Open(ByGroups(looked));
    EXPECT_FALSE(engine->exact());
    const auto measured = MeasureGate(*engine, scored, reference, evaluation, {});
    ASSERT_TRUE(measured.ok()) << measured.status().message();
    EXPECT_EQ(measured->choice.looked, looked);
    const double kl = measured->evaluation.comparison->kl.mean;
    EXPECT_GT(kl, 0);
    EXPECT_LT(kl, before);  // more groups lose less
    before = kl;
    const std::uint64_t decisions = measured->evaluation.fed * engine->config().layers;
    EXPECT_EQ(measured->routing.decisions, decisions);
    EXPECT_EQ(engine->expert_usage().grouped, decisions * engine->config().moe.routing.top_k);
    EXPECT_GT(measured->groups.gate, 0);
    EXPECT_GT(measured->exact.gate, 0);
  }
}

TEST_F(GroupCalibration, ASwitchTurnsTheGateOffAndOnAgain) {
  const std::vector<TokenId> text = Text(120);
  Save(Calibrate({.groups = 2}, text).value());
  const auto plain = Open(), engine = Open(ByGroups(1));
  LossySwitch lossy = LossySwitch::Of(*engine).value();
  const auto logits_of = [&](Engine& of) {
    Session session = Session::Create(of).value();
    EXPECT_TRUE(session.Feed(std::span(text).first(9)).ok());
    return std::vector<float>(session.logits().begin(), session.logits().end());
  };
  const std::vector<float> exact = logits_of(*plain);
  EXPECT_NE(logits_of(*engine), exact);
  lossy.SetExact(true);
  EXPECT_TRUE(engine->exact());
  EXPECT_EQ(logits_of(*engine), exact);
  lossy.SetExact(false);
  EXPECT_FALSE(engine->exact());
  EXPECT_NE(logits_of(*engine), exact);
}

}  // namespace
}  // namespace troupe
