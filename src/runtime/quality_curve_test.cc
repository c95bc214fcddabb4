#include "runtime/quality_curve.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "forge/synth.h"
#include "io/text_file.h"
#include "store/model_fingerprint.h"
#include "testing/edited_text.h"
#include "testing/temp_folder.h"

namespace troupe {
namespace {

using testing::HasSubstr;

QualityCurve ExampleCurve() {
  MeasuredChain exact{.chain = "exact",
                      .tokens = 99,
                      .perplexity_ratio = {.mean = 1, .least = 1, .most = 1},
                      .bytes = 4096,
                      .seconds = 0.25};
  MeasuredChain smoe{.chain = "smoe:alpha=0.2",
                     .tokens = 99,
                     .kl = {.mean = 0.001, .least = 0.0001, .most = 0.003},
                     .perplexity_ratio = {.mean = 1.0 + 1.0 / 1024, .least = 0.999, .most = 1.005},
                     .changed = 0.125,
                     .bytes = 2048,
                     .seconds = 0.2};
  QualityCurve curve{.fingerprint = "00ff",
                     .text = "book.txt",
                     .tokens = 99,
                     .cache = "echo",
                     .predictor = "none",
                     .reading = "container none",
                     .machine = "2 of 2 x CPU",
                     .perplexity = 7.5,
                     .shares = {}};
  curve.shares.push_back({.share = 0.25, .exact = exact, .chains = {smoe}});
  smoe.perplexity_ratio.mean = 0.9995;  // it can come out better than exact
  curve.shares.push_back({.share = 0.5, .exact = exact, .chains = {smoe}});
  return curve;
}

class QualityCurveTest : public testing::Test {
 protected:
  std::string Saved(const QualityCurve& curve, const std::string& name = "m.quality.json") {
    const std::string path = folder_.PathOf(name);
    EXPECT_TRUE(SaveQuality(curve, path).ok());
    return path;
  }

  TempFolder folder_;
};

TEST_F(QualityCurveTest, ReadsBackWhatItWrote) {
  const auto read = LoadQuality(Saved(ExampleCurve()));
  ASSERT_TRUE(read.ok()) << read.status().message();
  EXPECT_EQ(*read, ExampleCurve());
}

TEST_F(QualityCurveTest, KeepsSharesAndChainsThatAreNotMeasuredAgain) {
  const QualityCurve before = ExampleCurve();
  QualityCurve now = before;
  MeasuredChain again = before.shares[0].chains[0], other = again;
  again.bytes = 1024;  // what was measured last counts
  other.chain = "buddies";
  now.shares[0].exact.seconds = 0.5;
  now.shares[0].chains = {other, again};
  now.shares[1].share = 0.375;
  ASSERT_EQ(MeasuredOtherwise(before, now), "");
  const QualityCurve both = WithSharesOf(before, now);
  ASSERT_EQ(both.shares.size(), 3u);
  EXPECT_EQ(both.shares[0], now.shares[0]);
  EXPECT_EQ(both.shares[1], now.shares[1]);
  EXPECT_EQ(both.shares[2], before.shares[1]);
  EXPECT_TRUE(LoadQuality(Saved(both)).ok());  // which wants them rising
}

TEST_F(QualityCurveTest, OneMoreChainAtAShareLeavesItsOthersToChooseFrom) {
  const QualityCurve before = ExampleCurve();
  QualityCurve now = before;
  now.shares.erase(now.shares.begin());
  now.shares[0].chains[0].chain = "buddies";
  now.shares[0].chains[0].perplexity_ratio.most = 2;
  const QualityCurve both = WithSharesOf(before, now);
  ASSERT_EQ(both.shares[1].chains.size(), 2u);
  EXPECT_EQ(both.shares[1].chains[0].chain, "buddies");
  EXPECT_EQ(both.shares[1].chains[1], before.shares[1].chains[0]);
  EXPECT_EQ(ChooseChain(both.shares, 0.5, 0.01)->chain, "smoe:alpha=0.2");
}

TEST_F(QualityCurveTest, TellsWhatWasMeasuredOtherwise) {
  const QualityCurve before = ExampleCurve();
  const auto told = [&](auto member, const auto& value) {
    QualityCurve now = before;
    now.*member = value;
    return MeasuredOtherwise(before, now);
  };
  EXPECT_EQ(told(&QualityCurve::fingerprint, "11ee"), "another model");
  EXPECT_EQ(told(&QualityCurve::text, "other.txt"), "the text book.txt");
  EXPECT_EQ(told(&QualityCurve::tokens, 98u), "99 tokens");
  EXPECT_EQ(told(&QualityCurve::cache, "lru"), "--cache echo");
  EXPECT_EQ(told(&QualityCurve::predictor, "gate"), "--predict none");
  EXPECT_EQ(told(&QualityCurve::reading, "container 12"), "container none");
  EXPECT_EQ(told(&QualityCurve::machine, "1 of 2 x CPU"), "the machine 2 of 2 x CPU");
  EXPECT_THAT(told(&QualityCurve::perplexity, 7.25), HasSubstr("perplexity 7.5000, now 7.2500"));
}

TEST_F(QualityCurveTest, WhatIsNoCurveOrCannotBeIsRefusedWithItsPlace) {
  const std::string good = ReadWholeText(Saved(ExampleCurve()), 1_MiB).value();
  const auto error = [&](const std::string& from, const std::string& to) {
    const auto read = LoadQuality(folder_.Write("bad", Edited(good, from, to)));
    return read.ok() ? std::string("accepted") : read.status().message();
  };
  EXPECT_EQ(error("\"tokens\": 99", "\"tokens\":99"), "accepted");
  EXPECT_THAT(error("troupe quality curve", "troupe buddies"),
              HasSubstr("bad: not a troupe quality curve"));
  EXPECT_THAT(error("\"version\": 2", "\"version\": 1"), HasSubstr("version: 1, expected 2"));
  EXPECT_THAT(error("\"perplexity\": 7.5", "\"perplexity\": 0.5"), HasSubstr("perplexity: 0.5"));
  EXPECT_THAT(error("\"share\": 0.25", "\"share\": 0"), HasSubstr("shares[0].share: 0"));
  EXPECT_THAT(error("\"share\": 0.25", "\"share\": 0.5"),
              HasSubstr("shares[1].share: 0.5, expected a share above 0.5"));
  EXPECT_THAT(error("\"changed\": 0.125", "\"changed\": 1.125"),
              HasSubstr("shares[0].chains[0].changed: 1.125"));
  EXPECT_THAT(error("\"mean\": 0.001", "\"mean\": -0.001"), HasSubstr("kl.mean: -0.001"));
  EXPECT_THAT(error("\"most\": 1.005", "\"most\": 0.5"), HasSubstr("perplexity_ratio.most: 0.5"));
  EXPECT_THAT(error("\"bytes_per_token\": 2048.0", "\"bytes_per_token\": null"),
              HasSubstr("bytes_per_token: null"));
  for (const std::size_t length : {std::size_t{0}, good.size() / 2}) {
    EXPECT_FALSE(LoadQuality(folder_.Write("cut", good.substr(0, length))).ok());
  }
}

TEST_F(QualityCurveTest, ALimitNeedsTheModelsOwnCurveAndNamesTheCommandThatMakesIt) {
  const std::string path = folder_.PathOf("m.gguf");
  ASSERT_TRUE(Synthesize(*FindShape("tiny-qwen2moe"), SynthOptions(), path).ok());
  const GgufModel model = GgufModel::Open(path).value();
  const auto choose = [&](double share) { return ChooseChainFor(model, share, 0.01); };

  EXPECT_THAT(choose(0.25).status().message(), HasSubstr("m.quality.json: no such file"));
  EXPECT_THAT(choose(0.25).status().message(), HasSubstr("`troupe calibrate " + path));

  QualityCurve curve = ExampleCurve();
  Saved(curve);
  EXPECT_THAT(choose(0.25).status().message(), HasSubstr("made for another model"));

  folder_.Write("m.quality.json", R"({"format":"troupe quality curve","version":1})");
  EXPECT_THAT(choose(0.25).status().message(), HasSubstr("version: 1, expected 2; `troupe calib"));

  curve.fingerprint = ToString(FingerprintModel(model).value());
  Saved(curve);
  ASSERT_TRUE(choose(0.25).ok()) << choose(0.25).status().message();
  EXPECT_EQ(choose(0.25)->chain.chain, "smoe:alpha=0.2");
  EXPECT_THAT(choose(0.125).status().message(), HasSubstr("--shares 11.2 (a tenth less"));
  EXPECT_TRUE(ChooseChainFor(model, 0.5, 0.01, Saved(curve, "other")).ok());
}

TEST_F(QualityCurveTest, ATimeATokenIsLookedUpUnderTheConditionsOfItsMeasurement) {
  const std::string path = folder_.PathOf("m.gguf");
  ASSERT_TRUE(Synthesize(*FindShape("tiny-qwen2moe"), SynthOptions(), path).ok());
  const GgufModel model = GgufModel::Open(path).value();
  QualityCurve curve = ExampleCurve();
  curve.fingerprint = ToString(FingerprintModel(model).value());
  MeasuredChain stronger = curve.shares[0].chains[0];
  stronger.chain = "smoe:alpha=0.4";
  stronger.seconds = 0.15;
  curve.shares[0].chains.push_back(stronger);
  Saved(curve);
  const TimedUnder same{curve.machine, curve.cache, curve.predictor, curve.reading};
  // 0.25 s, 0.2 s and 0.15 s at alpha 0, 0.2 and 0.4.
  const auto found = ChooseAlphaFor(model, 0.25, 0.175, same);
  ASSERT_TRUE(found.ok()) << found.status().message();
  EXPECT_NEAR(found->alpha, 0.3, 1e-3);
  EXPECT_THAT(ChooseAlphaFor(model, 0.4, 0.175, same).status().message(), HasSubstr("--shares 40"));
  for (const TimedUnder& other :
       {TimedUnder{"another", same.cache, same.predictor, same.reading},
        TimedUnder{same.machine, "another", same.predictor, same.reading},
        TimedUnder{same.machine, same.cache, "another", same.reading},
        TimedUnder{same.machine, same.cache, same.predictor, "another"}}) {
    EXPECT_THAT(ChooseAlphaFor(model, 0.25, 0.175, other).status().message(),
                HasSubstr("times of '2 of 2 x CPU with --cache echo, --predict none and container "
                          "none' found, of '" +
                          ToString(other) + "' expected"));
  }
  EXPECT_NE(DescribeMachine(1, {}), DescribeMachine(2, {}));
  EXPECT_NE(DescribeMachine(1, {}), DescribeMachine(1, {.bytes_per_second = 1e6}));
}

}  // namespace
}  // namespace troupe
