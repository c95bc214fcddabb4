#include "troupe/metrics_text.h"

#include <gtest/gtest.h>

namespace troupe {
namespace {

constexpr std::string_view kPage =
    "# HELP a_total What a is\n"
    "# TYPE a_total counter\n"
    "a_total{kind=\"x\"} 2\n"
    "a_total{kind=\"y\",path=\"/a b}\"} 40.5\n"
    "a 7\n"
    "broken{ 5\n"
    "broken z\n"
    "large 1.5e+10";

TEST(MetricsText, GivesTheSumOfASeriesOrOfThoseWithALabel) {
  EXPECT_EQ(MetricIn(kPage, "a_total"), 42.5);
  EXPECT_EQ(MetricIn(kPage, "a_total", "kind=\"x\""), 2);
  EXPECT_EQ(MetricIn(kPage, "a_total", "kind=\"y\""), 40.5);
  EXPECT_EQ(MetricIn(kPage, "a"), 7);
  EXPECT_EQ(MetricIn(kPage, "large"), 1.5e10);
}

TEST(MetricsText, HasNothingOfWhatIsNotThere) {
  EXPECT_EQ(MetricIn(kPage, "b"), std::nullopt);
  EXPECT_EQ(MetricIn(kPage, "a_total", "kind=\"z\""), std::nullopt);
  EXPECT_EQ(MetricIn(kPage, "a", "kind=\"x\""), std::nullopt);
  EXPECT_EQ(MetricIn(kPage, "broken"), std::nullopt);
  EXPECT_EQ(MetricIn("", "a"), std::nullopt);
}

}  // namespace
}  // namespace troupe
