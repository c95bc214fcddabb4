#include "troupe/calibration_page.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace troupe {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;
using ::testing::StartsWith;

ModelProfile AProfile() {
  ModelProfile profile;
  profile.tokens = 100;
  ProfiledLayer layer{.layer = 1};
  layer.plain[static_cast<std::size_t>(ForecastPlace::kGateBefore)] = {
      .tokens = 100, .similarity = 0.9, .expected = 0.5, .guessed = 0.67};
  layer.corrected.front() = {.tokens = 100, .similarity = 0.9, .expected = 0.7, .guessed = 0.85};
  profile.forecasts.push_back(layer);
  return profile;
}

TEST(CalibrationPage, BeginsWithWhatTheUserCameFor) {
  EXPECT_THAT(CalibrationPage(AProfile(), "m.profile.json"),
              StartsWith("done: 85 % of the experts that a layer uses will be predicted instead of "
                         "67 %\nleft in m.profile.json, which runs"));
}

TEST(CalibrationPage, IsNotDoneWhereSomethingIsMeasuredAfterIt) {
  EXPECT_THAT(CalibrationPage(AProfile(), "m", /*ends=*/false),
              StartsWith("predictions learned: 85 % of the experts"));
}

TEST(CalibrationPage, HasARowForEachLayerAndADashWhereNothingIsKnown) {
  const std::string page = CalibrationPage(AProfile(), "m");
  EXPECT_THAT(page, HasSubstr("\n1                  -     67.0 %          -        85.0 %          "
                              "-          -\n"));
  EXPECT_THAT(page, HasSubstr("\nmean               -     67.0 %"));
  EXPECT_THAT(page, HasSubstr("\ntop-k              -     50.0 %"));
  EXPECT_THAT(page, Not(HasSubstr("cache misses")));
}

TEST(CalibrationPage, SaysWhatKeepingFirstLayersGains) {
  ModelProfile profile = AProfile();
  profile.shallow.push_back(
      {.share = 0.25,
       .costs = {{.misses = 18, .uncovered = 5}, {.layers = 1, .misses = 17, .uncovered = 2}}});
  EXPECT_THAT(CalibrationPage(profile, "m"),
              HasSubstr("           25.0 %                17.00                2.00               "
                        "             1 (none: 18.00, 5.00)\n"));
}

TEST(CalibrationPage, RecordsTheMeansOfAllLayers) {
  const Json record = CalibrationRecord(AProfile(), "m.profile.json");
  EXPECT_EQ(record.Find("profile")->AsString(), "m.profile.json");
  EXPECT_EQ(record.Find("corrected 1")->Find("guessed")->AsDouble(), 0.85);
}

}  // namespace
}  // namespace troupe
