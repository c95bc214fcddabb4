#include "lab/quality_measurement.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <vector>

#include "base/rng.h"
#include "expert/substitution/substitution_spec.h"
#include "forge/synth.h"
#include "testing/temp_folder.h"

namespace troupe {
namespace {

using testing::HasSubstr;

class QualityMeasurement : public testing::Test {
 protected:
  void SetUp() override {
    Make("m.gguf", {});
    Rng rng(3);
    for (int i = 0; i < 96; ++i) {
      text_.push_back(static_cast<TokenId>(rng.Below(FindShape("tiny-olmoe")->vocabulary)));
    }
    const auto engine = Engine::Open(folder_.PathOf("m.gguf"), {.threads = 1}).value();
    slots_ = engine->plan().needs.AllExperts() / 2;
    ASSERT_TRUE(SaveExactLogits(*engine, text_, options_.evaluation, folder_.PathOf("exact")).ok());
  }

  void Make(const std::string& name, const SynthOptions& options) {
    ASSERT_TRUE(Synthesize(*FindShape("tiny-olmoe"), options, folder_.PathOf(name)).ok());
  }

  Result<MeasuredShare> Measure(const std::string& model = "m.gguf") {
    const auto open = [&](const std::string& chain) {
      opened_.push_back(chain);
      return Engine::Open(
          folder_.PathOf(model),
          {.threads = 1,
           .offload = {.slots = slots_, .predictor = "none", .lossiness = Chain{chain}}});
    };
    return MeasureShare(open, text_, LogitsReader::Open(folder_.PathOf("exact")).value(), options_);
  }

  TempFolder folder_;
  std::vector<TokenId> text_;
  std::uint32_t slots_ = 0;
  std::vector<std::string> opened_;
  QualityMeasurementOptions options_{.most_loss = 1e9, .evaluation = {.window = 8}};
};

TEST_F(QualityMeasurement, AChainThatChangesNothingLosesNothingAndReadsAsMuchAsExact) {
  options_.families = {{"smoe:alpha=0"}};
  const MeasuredShare share = Measure().value();
  EXPECT_EQ(share.share, 0.5);
  const MeasuredMean even{.mean = 1, .least = 1, .most = 1};
  EXPECT_EQ(share.exact.perplexity_ratio, even);
  ASSERT_EQ(share.chains.size(), 1u);
  const MeasuredChain& same = share.chains[0];
  EXPECT_EQ(same.chain, "smoe:alpha=0");
  EXPECT_EQ(same.perplexity_ratio, even);
  EXPECT_EQ(same.kl.most, 0);
  EXPECT_EQ(same.changed, 0);
  EXPECT_GT(same.bytes, 0);
  EXPECT_EQ(same.bytes, share.exact.bytes);
  EXPECT_EQ(same.tokens, 96u - 96 / 8);
}

TEST_F(QualityMeasurement, WhatIsAnsweredOtherwiseIsCountedAndSavesBytes) {
  options_.families = {{"drop"}, {"random"}};
  const MeasuredShare share = Measure().value();
  ASSERT_EQ(share.chains.size(), 2u);
  for (const MeasuredChain& chain : share.chains) {
    EXPECT_GT(chain.kl.mean, 0) << chain.chain;
    EXPECT_GT(chain.changed, 0) << chain.chain;
    EXPECT_LE(chain.changed, 1) << chain.chain;
    EXPECT_LT(chain.bytes, share.exact.bytes) << chain.chain;
    EXPECT_LE(chain.perplexity_ratio.least, chain.perplexity_ratio.mean);
    EXPECT_LE(chain.perplexity_ratio.mean, chain.perplexity_ratio.most);
  }
}

TEST_F(QualityMeasurement, WhatIsDroppedIsAShareOfWhatTheRouterChose) {
  options_.families = {{"top:keep=1"}};
  const MeasuredShare share = Measure().value();
  const double k = FindShape("tiny-olmoe")->experts->top_k;
  EXPECT_DOUBLE_EQ(share.chains.at(0).changed, (k - 1) / k);
}

TEST_F(QualityMeasurement, AFamilyEndsWithTheFirstChainThatSurelyLosesTooMuch) {
  options_.most_loss = -1;  // everything surely loses more than that
  options_.families = {{"drop:most-share=0.1", "drop"}, {"smoe:alpha=0.1", "smoe:alpha=0.2"}};
  const MeasuredShare share = Measure().value();
  EXPECT_EQ(opened_, (std::vector<std::string>{"exact", "drop:most-share=0.1", "smoe:alpha=0.1"}));
  EXPECT_EQ(share.chains.size(), 2u);
}

TEST_F(QualityMeasurement, ProgressCountsTheTokensOfAllChainsAndThoseThatAreLeftOutAsDone) {
  options_.most_loss = -1;  // the first chain of each family is the last
  options_.families = {{"drop:most-share=0.1", "drop"}, {"smoe:alpha=0.1"}};
  std::vector<std::size_t> told;
  options_.progress = [&](std::size_t done, std::size_t all) {
    EXPECT_EQ(all, 4 * text_.size());
    told.push_back(done);
  };
  ASSERT_TRUE(Measure().ok());
  EXPECT_TRUE(std::ranges::is_sorted(told));
  EXPECT_THAT(told, testing::IsSupersetOf({text_.size(), 2 * text_.size(), 4 * text_.size()}));
  EXPECT_EQ(std::ranges::count_if(told,
                                  [&](std::size_t done) {
                                    return done > 2 * text_.size() && done <= 3 * text_.size();
                                  }),
            0)
      << "of the chain that was left out";
}

TEST_F(QualityMeasurement, ComparesWithNothingButTheSameModelExact) {
  Make("other.gguf", {.seed = 9});
  EXPECT_THAT(Measure("other.gguf").status().message(), HasSubstr("differ"));
}

TEST(UsualChains, NameOthersOnlyWhereSomebodyMay) {
  bool named = false;
  for (const bool may : {false, true}) {
    for (const ChainFamily& family : UsualChains(may)) {
      for (const std::string& chain : family) {
        const bool names = ParseSubstitution(chain).value().TakesOthers();
        EXPECT_TRUE(may || !names) << chain;
        named = named || names;
      }
    }
  }
  EXPECT_TRUE(named);
}

TEST(UsualChains, LeaveBuddiesOut) {
  for (const ChainFamily& family : UsualChains(true)) {
    for (const std::string& chain : family) EXPECT_FALSE(NeedsBuddies(chain)) << chain;
  }
}

TEST_F(QualityMeasurement, WhereEveryExpertIsInMemoryThereIsNothingToMeasure) {
  slots_ *= 2;
  EXPECT_THAT(Measure().status().message(), HasSubstr("every expert is in memory"));
}

}  // namespace
}  // namespace troupe
