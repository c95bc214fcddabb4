// Plots are XML, have what they were given in them, and draw more higher.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <regex>

#include "plot/heat_map.h"
#include "plot/html_page.h"
#include "plot/line_chart.h"
#include "plot/svg.h"

namespace troupe {
namespace {

using testing::HasSubstr;

// Of all circles, in order.
std::vector<double> DotHeights(const std::string& svg) {
  std::vector<double> heights;
  const std::regex dot("<circle cx=\"[^\"]*\" cy=\"([^\"]*)\"");
  for (std::sregex_iterator at(svg.begin(), svg.end(), dot), end; at != end; ++at) {
    heights.push_back(std::stod((*at)[1]));
  }
  return heights;
}

std::size_t Count(const std::string& text, std::string_view what) {
  std::size_t count = 0;
  for (std::size_t at = text.find(what); at != std::string::npos; at = text.find(what, at + 1)) {
    ++count;
  }
  return count;
}

TEST(PlotTest, TextOfAnyKindIsEscaped) {
  EXPECT_EQ(EscapeXml("a<b & \"c\"\x01>"), "a&lt;b &amp; &quot;c&quot;&gt;");
  const std::string svg = ToSvg(LineChart{.title = "<script>", .series = {{"a&b", {{0, 1}}}}});
  EXPECT_THAT(svg, testing::Not(HasSubstr("<script>")));
  EXPECT_THAT(svg, HasSubstr("a&amp;b"));
}

TEST(PlotTest, AHigherValueIsDrawnHigherAndEverySeriesIsNamed) {
  const std::string svg = ToSvg(LineChart{
      .series = {{"low", {{0, 1}, {1, 1.5}}}, {"high", {{0, 7}, {1, 9}}, /*dashed=*/true}}});
  const std::vector<double> heights = DotHeights(svg);
  ASSERT_EQ(heights.size(), 4u);
  EXPECT_GT(heights[0], heights[1]);
  EXPECT_GT(heights[1], heights[2]);
  EXPECT_GT(heights[2], heights[3]);
  EXPECT_THAT(svg, HasSubstr(">low</text>"));
  EXPECT_THAT(svg, HasSubstr(">high</text>"));
  EXPECT_EQ(Count(svg, "stroke-dasharray"), 1u);
}

TEST(PlotTest, ALogarithmicAxisPutsDoublingsAtEqualSteps) {
  const std::string svg =
      ToSvg(LineChart{.log_x = true, .series = {{"s", {{1, 0}, {2, 0}, {4, 0}, {8, 1}}}}});
  std::vector<double> x;
  const std::regex dot("<circle cx=\"([^\"]*)\"");
  for (std::sregex_iterator at(svg.begin(), svg.end(), dot), end; at != end; ++at) {
    x.push_back(std::stod((*at)[1]));
  }
  ASSERT_EQ(x.size(), 4u);
  EXPECT_NEAR(x[1] - x[0], x[2] - x[1], 0.2);
  EXPECT_NEAR(x[2] - x[1], x[3] - x[2], 0.2);
}

TEST(PlotTest, NoPointsOneValueAndEqualValuesAreNoTrouble) {
  EXPECT_THAT(ToSvg(LineChart{}), HasSubstr("nothing to show"));
  EXPECT_THAT(ToSvg(LineChart{.series = {{"one", {{3, 3}}}}}), testing::Not(HasSubstr("nan")));
  EXPECT_THAT(ToSvg(LineChart{.series = {{"same", {{0, 3}, {1, 3}}}}}),
              testing::Not(HasSubstr("inf")));
  EXPECT_THAT(ToSvg(HeatMap{.rows = 1, .columns = 2, .values = {5, 5}}),
              testing::Not(HasSubstr("nan")));
  EXPECT_THAT(ToSvg(HeatMap{}), HasSubstr("</svg>"));
}

TEST(PlotTest, TicksAreRoundAndCoverTheRange) {
  EXPECT_EQ(NiceTicks(0, 10, 5), (std::vector<double>{0, 2, 4, 6, 8, 10}));
  EXPECT_EQ(NiceTicks(3, 3, 5), std::vector<double>{3});
  const std::vector<double> ticks = NiceTicks(0.13, 0.94, 6);
  EXPECT_LE(ticks.front(), 0.13);
  EXPECT_GE(ticks.size(), 5u);
}

TEST(PlotTest, AMapHasEveryCellInTheColourOfItsValue) {
  const std::string svg = ToSvg(HeatMap{.rows = 2, .columns = 2, .values = {0, 1, 1, 0}});
  const std::regex path("<path d=\"([^\"]*)\" fill=\"([^\"]*)\"");
  std::vector<std::string> colours;
  for (std::sregex_iterator at(svg.begin(), svg.end(), path), end; at != end; ++at) {
    EXPECT_EQ(Count((*at)[1], "M"), 2u);
    colours.push_back((*at)[2]);
  }
  ASSERT_EQ(colours.size(), 2u);
  EXPECT_EQ(HeatColour(0), "#440154");
  EXPECT_EQ(HeatColour(1), "#fde725");
  EXPECT_NE(colours[0], colours[1]);
}

TEST(PlotTest, APageHasItsPicturesAndAsksForNothingElse) {
  const std::string html = ToHtml({.title = "T & U",
                                   .text = "One.\n\nTwo.",
                                   .sections = {{.heading = "H", .svgs = {"<svg>1</svg>"}}}});
  EXPECT_THAT(html, HasSubstr("<svg>1</svg>"));
  EXPECT_THAT(html, HasSubstr("<h1>T &amp; U</h1>"));
  EXPECT_EQ(Count(html, "<p>"), 2u);
  EXPECT_EQ(Count(html, "src="), 0u);
  EXPECT_EQ(Count(html, "href="), 0u);
}

}  // namespace
}  // namespace troupe
