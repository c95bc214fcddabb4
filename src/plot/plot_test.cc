// Plots are XML, have what they were given in them, and draw more higher.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <array>
#include <cmath>
#include <limits>
#include <regex>

#include "plot/heat_map.h"
#include "plot/html_page.h"
#include "plot/line_chart.h"
#include "plot/svg.h"
#include "plot/timeline.h"

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

TEST(PlotTest, TextThatIsNoUtf8IsNoXmlTrouble) {
  EXPECT_EQ(EscapeXml("Größe → 𝄞"), "Größe → 𝄞");
  EXPECT_EQ(EscapeXml("a\xff"
                      "b\xc3"),
            "a?b?");
  EXPECT_EQ(EscapeXml("\xc0\xaf\xed\xa0\x80"), "?????");  // a long '/', half of a pair
  EXPECT_EQ(Shortened("short", 5), "short");
  EXPECT_EQ(Shortened("Größe", 6), "Gr…");  // not through the ö
  EXPECT_EQ(Shortened("\xbf\xbf\xbf\xbf\xbf", 4), "…");
}

TEST(PlotTest, ManySeriesAreNamedBelowEachOtherWithinThePicture) {
  LineChart chart;
  for (int i = 0; i < 40; ++i) {
    chart.series.push_back({.name = fmt::format("series {}", i), .points = {{0, 1}, {1, 1}}});
  }
  const std::string svg = ToSvg(chart);
  const std::regex name("<text x=\"[^\"]*\" y=\"([^\"]*)\"[^>]*>series");
  std::vector<double> heights;
  for (std::sregex_iterator at(svg.begin(), svg.end(), name), end; at != end; ++at) {
    heights.push_back(std::stod((*at)[1]));
  }
  ASSERT_EQ(heights.size(), 40u);
  std::ranges::sort(heights);
  EXPECT_GT(heights.front(), 50);  // below the title
  for (std::size_t i = 1; i < heights.size(); ++i) EXPECT_GE(heights[i] - heights[i - 1], 14.9);
  std::smatch size;
  ASSERT_TRUE(std::regex_search(svg, size, std::regex("height=\"([0-9]+)\"")));
  EXPECT_LT(heights.back(), std::stod(size[1]));
}

TEST(PlotTest, ASeriesHasTheColourAndDashesThatItAsksFor) {
  const std::string svg = ToSvg(LineChart{
      .series = {
          {"a", {{0, 1}, {1, 1}}},
          {.name = "b", .points = {{0, 2}, {1, 2}}, .dash = LineDash::kDotted, .colour = 0}}});
  const std::regex line("stroke=\"(#[0-9a-f]+)\" stroke-width=\"2\"");
  std::vector<std::string> colours;
  for (std::sregex_iterator at(svg.begin(), svg.end(), line), end; at != end; ++at) {
    colours.push_back((*at)[1]);
  }
  ASSERT_EQ(colours.size(), 4u);  // each line, and a piece of it next to its name
  EXPECT_EQ(colours, std::vector<std::string>(4, colours.front()));
  EXPECT_EQ(Count(svg, "stroke-dasharray=\"2 3\""), 2u);
}

TEST(PlotTest, AHigherValueIsDrawnHigherAndEverySeriesIsNamed) {
  const std::string svg = ToSvg(LineChart{
      .series = {{"low", {{0, 1}, {1, 1.5}}}, {"high", {{0, 7}, {1, 9}}, LineDash::kDashed}}});
  const std::vector<double> heights = DotHeights(svg);
  ASSERT_EQ(heights.size(), 4u);
  EXPECT_GT(heights[0], heights[1]);
  EXPECT_GT(heights[1], heights[2]);
  EXPECT_GT(heights[2], heights[3]);
  EXPECT_THAT(svg, HasSubstr(">low</text>"));
  EXPECT_THAT(svg, HasSubstr(">high</text>"));
  EXPECT_EQ(Count(svg, "stroke-dasharray"), 2u);  // and the piece next to its name
}

TEST(PlotTest, ALineBeneathAnotherShowsOnBothSidesOfIt) {
  const auto widths = [](double apart) {
    const std::string svg =
        ToSvg(LineChart{.y_least = 0,
                        .y_most = 10,
                        .series = {{"below", {{0, 1}, {1, 5}, {2, 2}}},
                                   {"above", {{0, 1}, {1, 5 + apart}, {2, 2 + apart}}}}});
    return std::pair(Count(svg, "stroke-width=\"5.5\""), Count(svg, "stroke-width=\"2\""));
  };
  EXPECT_EQ(widths(0), std::pair(std::size_t{1}, std::size_t{3}));  // two are pieces beside names
  EXPECT_EQ(widths(3), std::pair(std::size_t{0}, std::size_t{4}));
}

TEST(PlotTest, IntervalsAndLongTicksHaveRoom) {
  LineChart chart{.y_unit = AxisUnit::kPercent, .series = {{"s", {{0, 0.05}, {1, 0.06}}}}};
  chart.series[0].spans = {{0.04, 0.9}, {0.05, 0.07}};
  EXPECT_THAT(ToSvg(chart), HasSubstr(">80 %</text>"));  // as high as the interval
  const auto left = [](double most) {
    const std::string svg =
        ToSvg(LineChart{.y_most = most, .series = {{"s", {{0, 0}, {1, most}}}}});
    std::smatch line;
    EXPECT_TRUE(std::regex_search(svg, line, std::regex("<line x1=\"([^\"]*)\"")));
    return std::stod(line[1]);
  };
  EXPECT_GT(left(0.00012), left(1) + 10);
}

TEST(PlotTest, EveryPlotIsDarkOnADarkScreenButNumbersOnCells) {
  const std::string map =
      ToSvg(HeatMap{.rows = 1, .columns = 2, .values = {0, 1}, .numbers = true});
  EXPECT_THAT(map, HasSubstr("prefers-color-scheme: dark"));
  EXPECT_THAT(ToSvg(LineChart{.series = {{"s", {{0, 1}}}}}),
              HasSubstr("prefers-color-scheme: dark"));
  for (const std::string_view own : {"#101010", "#fdfdfd"}) {  // as bright as the cell asks
    EXPECT_EQ(Count(map, fmt::format("fill=\"{}\"", own)), 1u);
  }
}

TEST(PlotTest, SpansAreDrawnAboutTheirPointsAndEndWithThePlot) {
  constexpr double kNoEnd = std::numeric_limits<double>::infinity();
  LineChart chart{.y_least = 0, .y_most = 10, .series = {{"s", {{0, 5}, {1, 5}}}}};
  const std::size_t plain = Count(ToSvg(chart), "<line");
  chart.series[0].spans = {{4, 6}, {-kNoEnd, kNoEnd}};
  chart.series[0].hints = {"first", "second"};
  const std::string svg = ToSvg(chart);
  EXPECT_EQ(Count(svg, "<line"), plain + 2);
  EXPECT_THAT(svg, testing::Not(HasSubstr("inf")));
  EXPECT_THAT(svg, HasSubstr("second: 5 at 1"));
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

TEST(PlotTest, BetweenWholeNumbersThereAreNoTicks) {
  const auto chart = [](double second) {
    return ToSvg(LineChart{.series = {{"s", {{1, 0}, {second, 0.25}, {4, 1}}}}});
  };
  EXPECT_EQ(Count(chart(2), ">1.5</text>"), 0u);
  EXPECT_EQ(Count(chart(2), ">3</text>"), 1u);
  EXPECT_EQ(Count(chart(2.25), ">1.5</text>"), 1u);
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

TEST(PlotTest, LongNamesOfColumnsAreTurnedAndValuesBeyondTheScaleAreMarked) {
  HeatMap map{.rows = 1, .columns = 2, .values = {0, 5}, .column_names = {"a", "b"}, .most = 4};
  EXPECT_EQ(Count(ToSvg(map), "rotate(-35"), 0u);
  EXPECT_THAT(ToSvg(map), HasSubstr("≥ 4"));
  map.column_names = {"a name of some length", "another that is as long"};
  map.most = 5;
  EXPECT_EQ(Count(ToSvg(map), "rotate(-35"), 2u);
  EXPECT_THAT(ToSvg(map), testing::Not(HasSubstr("≥")));
}

TEST(PlotTest, ATimelineDrawsWhatLanesDidToOneScaleAndLeavesHoles) {
  Timeline timeline{.title = "T",
                    .lanes = {"computing", "disk"},
                    .kinds = {{"busy", "#112233"}, {"waiting", "#445566"}},
                    .rows = {{.name = "long",
                              .lanes = {{{0, 4, 0}, {4, 10, 1}}, {{-2, 1, 0}, {9, 12, 0}}},
                              .marks = {3},
                              .length = 10},
                             {.name = "short", .lanes = {{{0, 5, 0}}, {}}, .length = 5}}};
  const std::string svg = ToSvg(timeline);
  // 900 wide for the longest; what lies outside of its row is cut off.
  EXPECT_THAT(svg, HasSubstr("M170.00 96.0h360.00"));
  EXPECT_THAT(svg, HasSubstr("M530.00 96.0h540.00"));
  EXPECT_THAT(svg, HasSubstr("M170.00 113.0h90.00v15h-90.00zM980.00 113.0h90.00"));
  EXPECT_THAT(svg, HasSubstr("h450.00"));
  EXPECT_EQ(Count(svg, "fill=\"#445566\""), 2u);  // once in what the colours mean
  EXPECT_THAT(svg, HasSubstr("prefers-color-scheme: dark"));
  timeline.rows.clear();
  EXPECT_THAT(ToSvg(timeline), HasSubstr("nothing to show"));
}

TEST(PlotTest, ATimelineIsAsWideAsThereIsRoomAndHasRoomForItsNotes) {
  Timeline timeline{
      .title = "T", .lanes = {"l"}, .kinds = {}, .rows = {{.lanes = {{}}, .length = 1}}};
  const auto width = [&timeline] {
    const std::string svg = ToSvg(timeline);
    const std::string tag = svg.substr(0, svg.find('>'));
    EXPECT_THAT(tag, HasSubstr("max-width: 100%"));
    EXPECT_THAT(tag, testing::Not(HasSubstr(" width=")));
    std::smatch box;
    EXPECT_TRUE(std::regex_search(tag, box, std::regex("viewBox=\"0 0 ([0-9]+) ")));
    return std::stod(box[1]);
  };
  const double usual = width();
  timeline.rows[0].note = std::string(60, 'n');
  EXPECT_GT(width(), usual + 100);
}

// "#rrggbb" as three numbers.
std::array<int, 3> Channels(const std::string& colour) {
  const auto at = [&](std::size_t i) { return std::stoi(colour.substr(i, 2), nullptr, 16); };
  return {at(1), at(3), at(5)};
}

TEST(PlotTest, LinesHaveColoursThatAreToldApartInTheDarkToo) {
  LineChart chart;
  for (int i = 0; i < 8; ++i) {
    const double y = i;
    chart.series.push_back({.name = fmt::format("{}", i), .points = {{0, y}, {1, y}}});
  }
  const std::string svg = ToSvg(chart);
  std::vector<std::string> dark;
  const std::regex name("fill=\"(#[0-9a-f]{6})\"[^>]* font-weight=\"600\">[0-7]</text>");
  for (std::sregex_iterator at(svg.begin(), svg.end(), name), end; at != end; ++at) {
    std::smatch found;
    const std::regex rule("stroke=\"" + at->str(1) + "\"\\] \\{ stroke: (#[0-9a-f]{6})");
    ASSERT_TRUE(std::regex_search(svg, found, rule)) << at->str(1);
    dark.push_back(found[1]);
  }
  ASSERT_EQ(dark.size(), 8u);
  constexpr int kApart = 60;  // of 441 from black to white
  for (std::size_t a = 0; a < dark.size(); ++a) {
    for (std::size_t b = a + 1; b < dark.size(); ++b) {
      int square = 0;
      for (std::size_t c = 0; c < 3; ++c) {
        const int apart = Channels(dark[a])[c] - Channels(dark[b])[c];
        square += apart * apart;
      }
      EXPECT_GE(square, kApart * kApart) << dark[a] << " and " << dark[b];
    }
  }
}

TEST(PlotTest, TextIsWrappedAtBlanks) {
  EXPECT_EQ(Wrapped("one two three", 7), (std::vector<std::string>{"one two", "three"}));
  EXPECT_EQ(Wrapped("a longword b", 4), (std::vector<std::string>{"a", "longword", "b"}));
  EXPECT_EQ(Wrapped("", 4), std::vector<std::string>{""});
}

// Where text ends that begins at a place or ends there, by the width that pictures take for it.
// At the right there is a margin.
void ExpectWithin(const std::string& svg, double width) {
  const std::regex text(
      "<text x=\"([^\"]*)\" y=\"[^\"]*\" font-size=\"([^\"]*)\" fill=\"[^\"]*\" "
      "text-anchor=\"([^\"]*)\"[^>]*>([^<]*)<");
  int texts = 0;
  for (std::sregex_iterator at(svg.begin(), svg.end(), text), end; at != end; ++at, ++texts) {
    if (at->str(0).find("rotate") != std::string::npos) continue;
    const double x = std::stod((*at)[1]), size = std::stod((*at)[2]);
    const double wide = 0.55 * size * static_cast<double>((*at)[4].length());
    const double left = (*at)[3] == "end" ? x - wide : (*at)[3] == "middle" ? x - wide / 2 : x;
    EXPECT_GE(left, 0) << (*at)[4];
    EXPECT_LE(left + wide, width - kRightMargin + 0.01) << (*at)[4];
  }
  EXPECT_GT(texts, 5);
}

TEST(PlotTest, OnAPhoneAPictureIsAsWideAsItAndItsLettersAsLargeAsOnADesk) {
  LineChart chart{.title = "A title that would take more than the width of a phone's screen",
                  .subtitle =
                      "and below it a subtitle that is longer than that, about what is "
                      "shown",
                  .x_label = "experts in memory",
                  .y_label = "share"};
  HeatMap map{.title = chart.title,
              .subtitle = chart.subtitle,
              .x_label = "expert",
              .y_label = "layer",
              .value_label = "times even",
              .rows = 3,
              .columns = 128};
  for (std::size_t i = 0; i < 3; ++i) {
    chart.series.push_back({.name = fmt::format("a policy of a long name, the {}th", i),
                            .points = {{0.125, 100}, {0.75, 200.0 + static_cast<double>(i)}}});
    map.row_names.push_back(fmt::format("a long name, the {}th", i));
  }
  map.values.assign(map.rows * map.columns, 0.5);
  for (const std::string& svg : {ToSvg(chart, Screen::kPhone), ToSvg(map, Screen::kPhone)}) {
    EXPECT_THAT(svg, HasSubstr("viewBox=\"0 0 364 "));
    EXPECT_THAT(svg, HasSubstr("font-size=\"17.0\""));
    ExpectWithin(svg, kPhoneWidth);
  }
  const std::string svg = ToSvg(chart, Screen::kPhone);
  for (const LineSeries& series : chart.series) EXPECT_THAT(svg, HasSubstr(series.name));
  EXPECT_EQ(DotHeights(svg).size(), 6u);
}

TEST(PlotTest, APageHasItsPicturesAndAsksForNothingElse) {
  const LineChart chart{.title = "a chart", .series = {{"s", {{0, 1}, {1, 2}}}}};
  const HeatMap map{.title = "a map", .rows = 1, .columns = 2, .values = {0, 1}};
  const std::string html = ToHtml({.title = "T & U",
                                   .text = "One.\n\nTwo.",
                                   .sections = {{.heading = "H", .pictures = {chart, map}}}});
  for (const Screen screen : {Screen::kDesk, Screen::kPhone}) {
    EXPECT_THAT(html, HasSubstr(ToSvg(chart, screen)));
    EXPECT_THAT(html, HasSubstr(ToSvg(map, screen)));
  }
  EXPECT_THAT(html, HasSubstr("<h1>T &amp; U</h1>"));
  EXPECT_EQ(Count(html, "<p>"), 2u);
  EXPECT_THAT(html, HasSubstr("--card: #fff;"));  // the pictures' own ground, by day and by night
  EXPECT_THAT(html, HasSubstr("--card: #17181a;"));
  EXPECT_EQ(Count(html, "src="), 0u);
  EXPECT_EQ(Count(html, "href="), 0u);
}

}  // namespace
}  // namespace troupe
