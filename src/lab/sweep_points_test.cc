#include "lab/sweep_points.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <fstream>
#include <iterator>
#include <limits>

#include "testing/temp_folder.h"

namespace troupe {
namespace {

using testing::AllOf;
using testing::HasSubstr;

const Json kCommon = {{"format", "troupe sweep"}, {"model", "m.gguf"}, {"window", 64}};

SweepPoint PointOf(double resident, const std::string& chain) {
  return {.resident = resident,
          .slots = 24,
          .chain = chain,
          .tokens = 1000,
          .perplexity = 12.25,
          .perplexity_ratio = {.mean = 1.01, .least = 0.99, .most = 1.03},
          .mean_kl = {.mean = 0.1, .least = 0, .most = 0.2},
          .top1_agreement = {.mean = 0.9, .least = 0.85, .most = 0.95},
          .bytes_per_token = 1.0 / 3,
          .hit_rate = 0.7,
          .substituted = 0.125,
          .dropped = 0.01,
          .low = 0.02,
          .stall_s_per_token = 1e-4,
          .deciding_s_per_token = 1e-6,
          .tokens_per_s = 321.5};
}

class SweepPointsFile : public testing::Test {
 protected:
  std::string path() const { return folder_.PathOf("points.jsonl"); }
  std::string Text() const {
    std::ifstream file(path(), std::ios::binary);
    return {std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>()};
  }
  void Write(const std::string& text) const { std::ofstream(path(), std::ios::binary) << text; }

  TempFolder folder_;
};

TEST_F(SweepPointsFile, PointsComeBackToTheBit) {
  SweepPoint unsure = PointOf(0.375, "drop");
  const double kNoEnd = std::numeric_limits<double>::infinity();
  unsure.mean_kl = {.mean = 0.3, .least = -kNoEnd, .most = kNoEnd};
  {
    SweepPoints points = SweepPoints::Open(path(), kCommon).value();
    ASSERT_TRUE(points.Add(PointOf(0.75, "smoe:alpha=0.1")).ok());
    ASSERT_TRUE(points.Add(unsure).ok());
  }
  const SweepPoints again = SweepPoints::Open(path(), kCommon).value();
  ASSERT_EQ(again.points().size(), 2u);
  EXPECT_EQ(again.points()[0], PointOf(0.75, "smoe:alpha=0.1"));
  EXPECT_EQ(again.points()[1], unsure);
  ASSERT_NE(again.Find(0.375, "drop"), nullptr);
  EXPECT_EQ(again.Find(0.375, "exact"), nullptr);
  EXPECT_EQ(again.Find(0.5, "drop"), nullptr);
}

TEST_F(SweepPointsFile, ALineThatWasCutIsForgottenAndTheRestGoesOn) {
  {
    SweepPoints points = SweepPoints::Open(path(), kCommon).value();
    ASSERT_TRUE(points.Add(PointOf(0.5, "exact")).ok());
    ASSERT_TRUE(points.Add(PointOf(0.5, "drop")).ok());
  }
  const std::string whole = Text();
  Write(whole.substr(0, whole.size() - 7));
  {
    SweepPoints points = SweepPoints::Open(path(), kCommon).value();
    ASSERT_EQ(points.points().size(), 1u);
    ASSERT_TRUE(points.Add(PointOf(0.5, "drop")).ok());
  }
  EXPECT_EQ(Text(), whole);
  Write("{\"format\": \"tro");  // cut in its first line: as if nothing had been written
  EXPECT_TRUE(SweepPoints::Open(path(), kCommon).value().points().empty());
}

TEST_F(SweepPointsFile, PointsOfAnotherSweepAreRefusedAndLeftAlone) {
  { ASSERT_TRUE(SweepPoints::Open(path(), kCommon).value().Add(PointOf(0.5, "exact")).ok()); }
  const std::string before = Text();
  Json other = kCommon;
  other["model"] = "other.gguf";
  EXPECT_THAT(SweepPoints::Open(path(), other).status().message(),
              AllOf(HasSubstr(path() + ", line 1"),
                    HasSubstr("model \"m.gguf\", expected \"other.gguf\"")));
  other = kCommon;
  other["together"] = 3;
  EXPECT_THAT(SweepPoints::Open(path(), other).status().message(),
              HasSubstr("together is missing, expected 3"));
  EXPECT_EQ(Text(), before);
}

TEST_F(SweepPointsFile, ADamagedLineIsNamed) {
  Write(kCommon.Dump() + "\n{\"resident\": \"half\"}\n");
  EXPECT_THAT(SweepPoints::Open(path(), kCommon).status().message(),
              AllOf(HasSubstr("points.jsonl, line 2: resident"), HasSubstr("expected a number")));
  Write("no sweep\n");
  EXPECT_THAT(SweepPoints::Open(path(), kCommon).status().message(), HasSubstr("line 1: not JSON"));
}

}  // namespace
}  // namespace troupe
