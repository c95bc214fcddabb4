#include "troupe/trace_stats.h"

#include <algorithm>
#include <cmath>
#include <numeric>

#include "plot/heat_map.h"
#include "plot/html_page.h"
#include "plot/line_chart.h"

namespace troupe {
namespace {

using Statistics = TraceStatistics;

std::size_t Layers(const Statistics& s) { return s.header().moe_layers.size(); }
double Chance(const Statistics& s) {
  return static_cast<double>(s.header().top_k) / s.header().experts;
}

template <typename OfLayer>
double MeanOverLayers(const Statistics& s, const OfLayer& of_layer) {
  double sum = 0;
  for (std::size_t l = 0; l < Layers(s); ++l) sum += of_layer(l);
  return sum / static_cast<double>(Layers(s));
}

// Each expert's use beside an even one.
std::string UsesMap(const Statistics& s) {
  const TraceHeader& h = s.header();
  HeatMap map{.title = "How often each expert is chosen",
              .subtitle = "1: as often as if all were chosen alike",
              .x_label = "expert",
              .y_label = "layer",
              .value_label = "times even",
              .rows = Layers(s),
              .columns = h.experts,
              .least = 0,
              .most = 4};
  for (std::size_t l = 0; l < Layers(s); ++l) {
    map.row_names.push_back(fmt::format("{}", h.moe_layers[l]));
    for (std::uint32_t e = 0; e < h.experts; ++e) {
      map.values.push_back(static_cast<double>(s.Uses(l, e)) * h.experts /
                           (static_cast<double>(s.tokens()) * h.top_k));
    }
  }
  return ToSvg(map);
}

std::string ByLayer(const Statistics& s, const std::string& title, const std::string& y_label,
                    const std::vector<std::pair<std::string, std::vector<double>>>& series,
                    std::size_t dashed_from) {
  LineChart chart{.title = title, .x_label = "layer", .y_label = y_label};
  for (std::size_t i = 0; i < series.size(); ++i) {
    LineSeries line{.name = series[i].first, .dashed = i >= dashed_from};
    for (std::size_t l = 0; l < Layers(s); ++l) {
      line.points.emplace_back(s.header().moe_layers[l], series[i].second[l]);
    }
    chart.series.push_back(std::move(line));
  }
  return ToSvg(chart);
}

std::string EntropyChart(const Statistics& s) {
  std::vector<double> bits, even(Layers(s), std::log2(s.header().experts));
  for (std::size_t l = 0; l < Layers(s); ++l) bits.push_back(s.EntropyBits(l));
  return ByLayer(s, "Entropy of the experts' use", "bits",
                 {{"this trace", bits}, {"all alike", even}}, 1);
}

std::string ReuseChart(const Statistics& s) {
  LineChart chart{.title = "What comes back",
                  .subtitle = "share of a token's experts that an earlier token chose, too",
                  .x_label = "tokens between them",
                  .y_label = "experts in common",
                  .y_unit = AxisUnit::kPercent,
                  .y_least = 0,
                  .log_x = true};
  const auto line = [&](const std::string& name, const auto& value, bool dashed) {
    LineSeries series{.name = name, .dashed = dashed};
    for (std::size_t d = 0; d < Statistics::kDistances.size(); ++d) {
      series.points.emplace_back(Statistics::kDistances[d], value(d));
    }
    chart.series.push_back(std::move(series));
  };
  line(
      "mean of layers",
      [&](std::size_t d) {
        return MeanOverLayers(s, [&](std::size_t l) { return s.Reuse(l, d); });
      },
      false);
  line(
      fmt::format("layer {}", s.header().moe_layers.front()),
      [&](std::size_t d) { return s.Reuse(0, d); }, false);
  line(
      fmt::format("layer {}", s.header().moe_layers.back()),
      [&](std::size_t d) { return s.Reuse(Layers(s) - 1, d); }, false);
  line(
      "by chance", [&](std::size_t) { return Chance(s); }, true);
  return ToSvg(chart);
}

std::string WorkingSetChart(const Statistics& s) {
  LineChart chart{.title = "Working set",
                  .subtitle = "share of a layer's experts that so many adjacent tokens use",
                  .x_label = "tokens",
                  .y_label = "of a layer's experts",
                  .y_unit = AxisUnit::kPercent,
                  .y_least = 0,
                  .y_most = 1,
                  .log_x = true};
  LineSeries mean{.name = "mean of layers"}, least{.name = "smallest"}, most{.name = "largest"},
      chance{.name = "by chance", .dashed = true};
  for (std::size_t w = 0; w < Statistics::kWindows.size(); ++w) {
    std::vector<double> sets;
    for (std::size_t l = 0; l < Layers(s); ++l) {
      sets.push_back(s.WorkingSet(l, w) / s.header().experts);
    }
    if (sets.front() == 0) continue;  // no sequence is so long
    const double x = Statistics::kWindows[w];
    mean.points.emplace_back(
        x, std::accumulate(sets.begin(), sets.end(), 0.0) / static_cast<double>(sets.size()));
    least.points.emplace_back(x, *std::ranges::min_element(sets));
    most.points.emplace_back(x, *std::ranges::max_element(sets));
    chance.points.emplace_back(x, 1 - std::pow(1 - Chance(s), x));
  }
  chart.series = {mean, least, most, chance};
  return ToSvg(chart);
}

// Experts by rising number, the diagonal left dark: an expert is always chosen with itself.
std::string TogetherMap(const Statistics& s, std::size_t l) {
  const std::uint32_t experts = s.header().experts;
  HeatMap map{.title = fmt::format("Chosen together, layer {}", s.header().moe_layers[l]),
              .subtitle = fmt::format("of tokens that chose the row's expert; by chance {:.0f} %",
                                      100.0 * (s.header().top_k - 1) / (experts - 1)),
              .x_label = "expert",
              .y_label = "expert",
              .value_label = "chose both",
              .rows = experts,
              .columns = experts,
              .unit = AxisUnit::kPercent,
              .least = 0};
  for (std::uint32_t a = 0; a < experts; ++a) {
    for (std::uint32_t b = 0; b < experts; ++b) {
      map.values.push_back(a == b ? 0 : s.Together(l, a, b));
    }
  }
  std::vector<double> sorted = map.values;
  std::ranges::sort(sorted);
  map.most = std::max(sorted[sorted.size() * 995 / 1000], 0.01);  // a few pairs outshine the rest
  return ToSvg(map);
}

std::string DomainMap(const Statistics& s) {
  const std::vector<std::string> names = s.domains();
  HeatMap map{.title = "How differently domains use the experts",
              .subtitle = "Jensen-Shannon divergence, mean of layers: 0 alike, 1 nothing in common",
              .value_label = "divergence",
              .rows = names.size(),
              .columns = names.size(),
              .row_names = names,
              .column_names = names,
              .least = 0,
              .numbers = names.size() <= 12};
  for (std::string& name : map.row_names) name = name.empty() ? "(none)" : name;
  map.column_names = map.row_names;
  for (const std::string& a : names) {
    for (const std::string& b : names) map.values.push_back(s.DomainDistance(a, b));
  }
  return ToSvg(map);
}

}  // namespace

void PrintStatistics(const std::string& trace, const TraceStatistics& s) {
  fmt::print("{}: {}, {} tokens\n", trace, s.header().model, s.tokens());
  fmt::print("{:>6} {:>9} {:>9} {:>11} {:>11} {:>13}\n", "layer", "entropy", "hottest",
             "next token", "32 later", "in 16 tokens");
  for (std::size_t l = 0; l < Layers(s); ++l) {
    fmt::print("{:>6} {:>9.2f} {:>8.1f}x {:>9.1f} % {:>9.1f} % {:>13.1f}\n",
               s.header().moe_layers[l], s.EntropyBits(l), s.HottestOverUniform(l),
               100 * s.Reuse(l, 0), 100 * s.Reuse(l, Statistics::kDistances.size() - 1),
               s.WorkingSet(l, 4));
  }
  fmt::print("{:>6} {:>9.2f} {:>8.1f}x {:>9.1f} % {:>9.1f} % {:>13.1f}\n", "chance",
             std::log2(s.header().experts), 1.0, 100 * Chance(s), 100 * Chance(s),
             s.header().experts * (1 - std::pow(1 - Chance(s), 16)));
}

Json StatisticsRecord(const std::string& trace, const TraceStatistics& s) {
  Json record = {{"trace", trace}, {"model", s.header().model}, {"tokens", s.tokens()}};
  record["reuse_distances"] = Statistics::kDistances;
  record["windows"] = Statistics::kWindows;
  record["layers"] = Json::array();
  for (std::size_t l = 0; l < Layers(s); ++l) {
    Json layer = {{"layer", s.header().moe_layers[l]},
                  {"entropy_bits", s.EntropyBits(l)},
                  {"hottest_over_uniform", s.HottestOverUniform(l)}};
    for (std::size_t d = 0; d < Statistics::kDistances.size(); ++d) {
      layer["reuse"].push_back(s.Reuse(l, d));
    }
    for (std::size_t w = 0; w < Statistics::kWindows.size(); ++w) {
      layer["working_set"].push_back(s.WorkingSet(l, w));
    }
    for (std::uint32_t e = 0; e < s.header().experts; ++e) layer["uses"].push_back(s.Uses(l, e));
    record["layers"].push_back(std::move(layer));
  }
  record["domains"] = s.domains();
  for (const std::string& a : s.domains()) {
    Json row = Json::array();
    for (const std::string& b : s.domains()) row.push_back(s.DomainDistance(a, b));
    record["domain_divergence"].push_back(std::move(row));
  }
  return record;
}

std::string StatisticsPage(const std::string& trace, const TraceStatistics& s) {
  const TraceHeader& h = s.header();
  HtmlPage page{.title = fmt::format("Routing of {}", h.model),
                .text = fmt::format("{}: {} tokens, {} layers with experts, {} of {} experts a "
                                    "token.",
                                    trace, s.tokens(), Layers(s), h.top_k, h.experts)};
  page.sections.push_back({.heading = "Some experts are used more than others",
                           .text = "A cache that keeps the bright ones hits often. The further the "
                                   "entropy lies below the dashed line, the more there is to gain.",
                           .svgs = {UsesMap(s), EntropyChart(s)}});
  page.sections.push_back(
      {.heading = "And what was used comes back",
       .text = "What is above chance on the left is what a least-recently-used cache lives on; how "
               "fast the working set grows says how large it has to be.",
       .svgs = {ReuseChart(s), WorkingSetChart(s)}});
  PageSection together{.heading = "Experts that go together",
                       .text = "Bright spots are pairs that one token tends to choose both of.",
                       .svgs = {}};
  for (const std::size_t l : {std::size_t{0}, Layers(s) / 2, Layers(s) - 1}) {
    together.svgs.push_back(TogetherMap(s, l));
    if (Layers(s) == 1) break;
  }
  page.sections.push_back(std::move(together));
  if (s.domains().size() > 1) {
    page.sections.push_back({.heading = "Domains differ",
                             .text = "Where the numbers are large, what one kind of text makes hot "
                                     "is of little use to another.",
                             .svgs = {DomainMap(s)}});
  }
  return ToHtml(page);
}

}  // namespace troupe
