#include "lab/sweep.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <iterator>

#include "base/rng.h"
#include "forge/pack_model.h"
#include "forge/synth.h"
#include "gguf/reader.h"
#include "testing/temp_folder.h"

namespace troupe {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

class SweepOfASmallModel : public testing::Test {
 protected:
  void SetUp() override {
    Make("m.gguf", 1);
    options_.model = folder_.PathOf("m.gguf");
    options_.engine.threads = 1;
    options_.engine.offload.predictor = "none";  // what is read does not depend on time
    options_.resident = {0.5, 0.25};
    options_.chains = {"drop", "random"};
    options_.evaluation = {.window = 24};
    options_.text_name = "text";
    options_.settle = 24;
    options_.folder = folder_.PathOf("sweep");
    Rng rng(3);
    for (int i = 0; i < 96; ++i) options_.text.push_back(static_cast<TokenId>(rng.Below(200)));
  }

  void Make(const std::string& name, std::uint64_t seed) {
    SynthOptions synth;
    synth.seed = seed;
    ASSERT_TRUE(Synthesize(*FindShape("tiny-olmoe"), synth, folder_.PathOf(name)).ok());
  }

  std::string PointsPath() const { return options_.folder + "/points.jsonl"; }
  std::string Points() const {
    std::ifstream file(PointsPath(), std::ios::binary);
    return {std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>()};
  }

  // Which points were measured and not found.
  Result<std::vector<SweepPoint>> Run() {
    measured_.clear();
    SweepHooks hooks;
    hooks.on_point = [this](const SweepPoint& point, bool measured_now) {
      if (measured_now) measured_.push_back(fmt::format("{} {}", point.resident, point.chain));
    };
    return RunSweep(options_, hooks);
  }

  TempFolder folder_;
  SweepOptions options_;
  std::vector<std::string> measured_;
};

TEST_F(SweepOfASmallModel, ComparesEachChainAtEachSizeWithExactAnswers) {
  const std::vector<SweepPoint> points = Run().value();
  ASSERT_EQ(points.size(), 6u);
  for (const SweepPoint& point : points) {
    EXPECT_GT(point.tokens_per_s, 0) << point.chain;
    EXPECT_EQ(point.tokens, 3u * 23);
  }
  for (const std::size_t i : {0u, 3u}) {
    const SweepPoint &exact = points[i], &drop = points[i + 1], &random = points[i + 2];
    EXPECT_EQ(exact.chain, "exact");
    EXPECT_EQ(exact.perplexity_ratio.mean, 1);
    EXPECT_EQ(exact.mean_kl, (Interval{.mean = 0, .least = 0, .most = 0}));
    EXPECT_EQ(exact.substituted + exact.dropped, 0);
    EXPECT_GT(drop.mean_kl.mean, 0);
    EXPECT_GT(drop.dropped, 0);
    EXPECT_EQ(drop.substituted, 0);
    EXPECT_GT(random.substituted, 0);
    EXPECT_GT(random.mean_kl.mean, 0);
    EXPECT_GT(exact.bytes_per_token, 0);
    EXPECT_EQ(drop.bytes_per_token, 0);  // nobody waits for what is missing
    EXPECT_LT(random.bytes_per_token, exact.bytes_per_token);
  }
  EXPECT_GT(points[3].bytes_per_token, points[0].bytes_per_token);  // the smaller cache reads more
  EXPECT_GT(points[3].slots, 0u);
  EXPECT_EQ(points[0].slots, 2 * points[3].slots);
}

TEST_F(SweepOfASmallModel, GoesOnWhereItWasCut) {
  const std::vector<SweepPoint> whole = Run().value();
  EXPECT_EQ(measured_.size(), 6u);
  const std::string lines = Points();
  std::filesystem::resize_file(PointsPath(), lines.size() - 10);  // in its last line
  const std::vector<SweepPoint> again = Run().value();
  ASSERT_EQ(again.size(), 6u);
  EXPECT_THAT(measured_, ElementsAre("0.25 " + whole[5].chain));
  for (std::size_t i = 0; i < 5; ++i) EXPECT_EQ(again[i], whole[i]);
  // Measured apart from what came before it, it is the same again but for time.
  EXPECT_EQ(again[5].perplexity, whole[5].perplexity);
  EXPECT_EQ(again[5].mean_kl, whole[5].mean_kl);
  EXPECT_EQ(again[5].bytes_per_token, whole[5].bytes_per_token);
  EXPECT_TRUE(Run().ok());
  EXPECT_THAT(measured_, ElementsAre());
}

TEST_F(SweepOfASmallModel, AddsChainsToWhatItHas) {
  options_.resident = {0.5};
  ASSERT_TRUE(Run().ok());
  options_.chains.push_back("smoe:alpha=0.5");
  ASSERT_TRUE(Run().ok());
  EXPECT_THAT(measured_, ElementsAre(HasSubstr("0.5 smoe")));
}

TEST_F(SweepOfASmallModel, RefusesPointsOfAnotherModelTextOrNumberTogether) {
  ASSERT_TRUE(Run().ok());
  const std::string before = Points();
  SweepOptions kept = options_;
  Make("other.gguf", 2);
  std::filesystem::rename(folder_.PathOf("m.gguf"), folder_.PathOf("first.gguf"));
  std::filesystem::rename(folder_.PathOf("other.gguf"), folder_.PathOf("m.gguf"));
  EXPECT_THAT(Run().status().message(), HasSubstr("points.jsonl, line 1: fingerprint"));
  std::filesystem::rename(folder_.PathOf("first.gguf"), folder_.PathOf("m.gguf"));
  options_.text.back() += 1;
  EXPECT_THAT(Run().status().message(), HasSubstr("line 1: text_hash"));
  options_ = kept;
  options_.evaluation.together = 3;
  EXPECT_THAT(Run().status().message(), HasSubstr("line 1: together 1, expected 3"));
  EXPECT_EQ(Points(), before);
}

TEST_F(SweepOfASmallModel, RefusesPointsThatWereReadInAnotherWay) {
  ASSERT_TRUE(Run().ok());
  const std::string before = Points();
  const SweepOptions kept = options_;
  const auto refusal = [&](auto change) {
    options_ = kept;
    change(options_.engine);
    return std::string(Run().status().message());
  };
  EXPECT_THAT(refusal([](EngineOptions& e) {
                e.offload.link = {500e6, 1e-4};
              }),
              HasSubstr("line 1: link \"unlimited\", expected \""));
  EXPECT_THAT(refusal([](EngineOptions& e) { e.offload.prefetch.governed = false; }),
              HasSubstr("line 1: governed true, expected false"));
  EXPECT_THAT(refusal([](EngineOptions& e) { e.offload.fill = FillCache::kYes; }),
              HasSubstr("line 1: fill false, expected true"));
  EXPECT_THAT(refusal([](EngineOptions& e) { e.offload.shallow_layers = 1; }),
              HasSubstr("line 1: shallow null, expected 1"));
  // What lies under a name counts, not the name.
  const std::string lists = folder_.Write("m.buddies.json", "{}");
  EXPECT_THAT(refusal([](EngineOptions&) {}), HasSubstr("line 1: buddies \"none\", expected \""));
  std::filesystem::remove(lists);
  const std::string learned = folder_.Write("m.profile.json", "{}");
  EXPECT_THAT(refusal([](EngineOptions&) {}), HasSubstr("line 1: profile \"none\", expected \""));
  std::filesystem::remove(learned);
  const GgufModel model = GgufModel::Open(options_.model).value();
  ASSERT_TRUE(PackModel(model, {}, folder_.PathOf("m.experts")).ok());
  EXPECT_THAT(refusal([](EngineOptions&) {}), HasSubstr("line 1: container \"none\", expected \""));
  std::filesystem::remove(folder_.PathOf("m.experts"));
  EXPECT_THAT(refusal([](EngineOptions& e) { e.chunk = 7; }),
              HasSubstr("line 1: chunk 512, expected 7"));
  EXPECT_EQ(Points(), before);
  options_ = kept;
  EXPECT_TRUE(Run().ok());
}

TEST_F(SweepOfASmallModel, RefusesPointsThatBeganWithOtherScoreTables) {
  options_.resident = {0.5};
  options_.chains = {"drop"};
  const std::string tables = folder_.Write("m.scores", "of another predictor's concern");
  ASSERT_TRUE(Run().ok());
  std::filesystem::remove(tables);
  EXPECT_TRUE(Run().ok());  // without --predict scores nobody reads them
  options_.folder = folder_.PathOf("by scores");
  options_.engine.offload.predictor = "scores";
  ASSERT_TRUE(Run().ok());
  EXPECT_TRUE(Run().ok());
  const std::string before = Points();
  folder_.Write("m.scores", "made since");
  EXPECT_THAT(Run().status().message(), HasSubstr("line 1: scores \"none\", expected \""));
  EXPECT_EQ(Points(), before);
  options_.engine.offload.score_tables = "none";
  EXPECT_TRUE(Run().ok());
  EXPECT_THAT(measured_, ElementsAre());
}

TEST_F(SweepOfASmallModel, ComparesNothingWithAnswersThatAnotherModelLeft) {
  options_.resident = {0.5};
  ASSERT_TRUE(Run().ok());
  std::filesystem::remove(PointsPath());
  Make("m.gguf", 2);
  EXPECT_EQ(Run().value().front().mean_kl.mean, 0);
}

TEST_F(SweepOfASmallModel, ComparesWithAnswersOfFullCopiesAlone) {
  const GgufModel model = GgufModel::Open(options_.model).value();
  ASSERT_TRUE(PackModel(model, {.low = TensorType::kQ4_0}, folder_.PathOf("m.experts")).ok());
  options_.resident = {0.25};
  options_.chains = {"drop"};
  options_.engine.offload.low_copies = {.prefill_share = 1, .decode = true};
  options_.engine.offload.slots = 16;  // as a small budget would: the reference misses experts, too
  const SweepPoint point = Run().value().front();
  EXPECT_EQ(point.chain, "exact");
  EXPECT_GT(point.low, 0);
  EXPECT_GT(point.mean_kl.mean, 0);
}

TEST_F(SweepOfASmallModel, SubstitutesInBatchesOfAsManyAsGoTogether) {
  options_.resident = {0.25};
  options_.chains = {"drop"};
  options_.evaluation.together = 3;
  EXPECT_GT(Run().value()[1].dropped, 0);
}

TEST_F(SweepOfASmallModel, RefusesWhatItCannotMeasureBeforeItMeasures) {
  options_.chains = {"drop", "no-such-policy"};
  EXPECT_THAT(Run().status().message(), HasSubstr("no-such-policy"));
  EXPECT_FALSE(std::filesystem::exists(options_.folder));
  options_.chains = {"drop"};
  options_.text.resize(25);
  EXPECT_THAT(Run().status().message(), HasSubstr("25 tokens, expected more than the 24"));
}

}  // namespace
}  // namespace troupe
