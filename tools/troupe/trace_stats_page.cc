// Pictures of a trace's statistics on one page. Which figures of which papers they correspond to:
// docs/formats/trace.md.
#include <algorithm>
#include <cmath>
#include <functional>
#include <numeric>

#include "plot/heat_map.h"
#include "plot/html_page.h"
#include "plot/line_chart.h"
#include "troupe/trace_stats.h"

namespace troupe {
namespace {

using Statistics = TraceStatistics;

constexpr std::uint32_t kMostMapped = 1024;  // experts: a map of pairs has the square of that

template <typename OfLayer>
double MeanOverLayers(const Statistics& s, const OfLayer& of_layer) {
  double sum = 0;
  for (std::size_t l = 0; l < Layers(s); ++l) sum += of_layer(l);
  return sum / static_cast<double>(Layers(s));
}

// Each expert's use beside an even one.
HeatMap UsesMap(const Statistics& s) {
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
  return map;
}

LineChart ByLayer(const Statistics& s, const std::string& title, const std::string& y_label,
                  const std::vector<std::pair<std::string, std::vector<double>>>& series,
                  std::size_t dashed_from) {
  LineChart chart{.title = title, .x_label = "layer", .y_label = y_label};
  for (std::size_t i = 0; i < series.size(); ++i) {
    LineSeries line{.name = series[i].first,
                    .points = {},
                    .dash = i >= dashed_from ? LineDash::kDashed : LineDash::kSolid};
    for (std::size_t l = 0; l < Layers(s); ++l) {
      line.points.emplace_back(s.header().moe_layers[l], series[i].second[l]);
    }
    chart.series.push_back(std::move(line));
  }
  return chart;
}

LineChart EntropyChart(const Statistics& s) {
  std::vector<double> bits, even(Layers(s), std::log2(s.header().experts));
  for (std::size_t l = 0; l < Layers(s); ++l) bits.push_back(s.EntropyBits(l));
  return ByLayer(s, "Entropy of the experts' use", "bits",
                 {{"this trace", bits}, {"all alike", even}}, 1);
}

// How much of a layer's uses its most used expert has, its second, and so on.
LineChart PopularityChart(const Statistics& s) {
  const std::uint32_t experts = s.header().experts;
  std::vector<std::vector<double>> layers;
  for (std::size_t l = 0; l < Layers(s); ++l) {
    std::vector<double>& shares = layers.emplace_back();
    for (std::uint32_t e = 0; e < experts; ++e) {
      shares.push_back(static_cast<double>(s.Uses(l, e)) /
                       (static_cast<double>(s.tokens()) * s.header().top_k));
    }
    std::ranges::sort(shares, std::greater());
  }
  const auto [even, uneven] = std::ranges::minmax_element(
      layers, {}, [](const std::vector<double>& shares) { return shares.front(); });
  LineChart chart{.title = "Few experts do much of the work",
                  .subtitle = "share of a layer's uses, by how often the expert is used",
                  .x_label = "experts, the most used first",
                  .y_label = "of the layer's uses",
                  .y_unit = AxisUnit::kPercent,
                  .y_least = 0,
                  .dots = experts <= 64};
  const auto add = [&](const std::string& name, const auto& share, LineDash dash) {
    LineSeries series{.name = name, .points = {}, .dash = dash};
    for (std::uint32_t e = 0; e < experts; ++e) series.points.emplace_back(e + 1, share(e));
    chart.series.push_back(std::move(series));
  };
  const auto name_of = [&](auto layer) {
    return s.header().moe_layers[static_cast<std::size_t>(layer - layers.begin())];
  };
  add(
      fmt::format("layer {}, the least even", name_of(uneven)),
      [&shares = *uneven](std::uint32_t e) { return shares[e]; }, LineDash::kSolid);
  add(
      "mean of layers",
      [&](std::uint32_t e) {
        return MeanOverLayers(s, [&](std::size_t l) { return layers[l][e]; });
      },
      LineDash::kSolid);
  add(
      fmt::format("layer {}, the most even", name_of(even)),
      [&shares = *even](std::uint32_t e) { return shares[e]; }, LineDash::kSolid);
  add(
      "all alike", [&](std::uint32_t) { return 1.0 / experts; }, LineDash::kDashed);
  return chart;
}

LineChart RankChart(const Statistics& s) {
  const RankReuse& reuse = s.rank_reuse();
  LineChart chart{.title = "What scored high is chosen soon",
                  .subtitle = fmt::format("share of experts that one of the next {} tokens chose, "
                                          "by how high this token scored them",
                                          RankReuse::kNextTokens),
                  .x_label = reuse.ranks() > s.header().top_k
                                 ? "place by score; those that were not chosen, too"
                                 : "place by score, among the chosen",
                  .y_label = "chosen soon",
                  .y_unit = AxisUnit::kPercent,
                  .y_least = 0,
                  .dots = reuse.ranks() <= 64};
  const auto add = [&](const std::string& name, const auto& value, LineDash dash) {
    LineSeries series{.name = name, .points = {}, .dash = dash};
    for (std::uint32_t rank = 0; rank < reuse.ranks(); ++rank) {
      series.points.emplace_back(rank + 1, value(rank));
    }
    chart.series.push_back(std::move(series));
  };
  add(
      "mean of layers",
      [&](std::uint32_t rank) {
        return MeanOverLayers(s, [&](std::size_t l) { return reuse.Reused(l, rank); });
      },
      LineDash::kSolid);
  add(
      fmt::format("layer {}", s.header().moe_layers.front()),
      [&](std::uint32_t rank) { return reuse.Reused(0, rank); }, LineDash::kSolid);
  add(
      fmt::format("layer {}", s.header().moe_layers.back()),
      [&](std::uint32_t rank) { return reuse.Reused(Layers(s) - 1, rank); }, LineDash::kSolid);
  add(
      "by chance",
      [&](std::uint32_t) { return 1 - std::pow(1 - Chance(s), RankReuse::kNextTokens); },
      LineDash::kDashed);
  return chart;
}

LineChart ReuseChart(const Statistics& s) {
  LineChart chart{.title = "What comes back",
                  .subtitle = "share of a token's experts that an earlier token chose, too",
                  .x_label = "tokens between them",
                  .y_label = "experts in common",
                  .y_unit = AxisUnit::kPercent,
                  .y_least = 0,
                  .log_x = true};
  const auto line = [&](const std::string& name, const auto& value, bool dashed) {
    LineSeries series{
        .name = name, .points = {}, .dash = dashed ? LineDash::kDashed : LineDash::kSolid};
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
  return chart;
}

LineChart WorkingSetChart(const Statistics& s) {
  LineChart chart{.title = "Working set",
                  .subtitle = "share of a layer's experts that n adjacent tokens use",
                  .x_label = "tokens",
                  .y_label = "of a layer's experts",
                  .y_unit = AxisUnit::kPercent,
                  .y_least = 0,
                  .y_most = 1,
                  .log_x = true};
  LineSeries mean{.name = "mean of layers"}, least{.name = "smallest"}, most{.name = "largest"},
      chance{.name = "by chance", .points = {}, .dash = LineDash::kDashed};
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
  return chart;
}

// Experts by rising number, the diagonal left dark: an expert is always chosen with itself.
HeatMap TogetherMap(const Statistics& s, std::size_t l) {
  const std::uint32_t experts = s.header().experts;
  HeatMap map{.title = fmt::format("Chosen together, layer {}", s.header().moe_layers[l]),
              .subtitle = fmt::format("of tokens that chose the row's expert; by chance {:.0f} %",
                                      100.0 * (s.header().top_k - 1) / std::max(1u, experts - 1)),
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
  return map;
}

// How alike the company is in which two experts are chosen: the cosine of their rows of the map of
// what is chosen together, themselves left out. What a trace knows of which could stand in for
// which.
HeatMap CompanyMap(const Statistics& s, std::size_t l) {
  const std::uint32_t experts = s.header().experts;
  HeatMap map{.title = fmt::format("Chosen in like company, layer {}", s.header().moe_layers[l]),
              .subtitle = "1: the same others are chosen with both",
              .x_label = "expert",
              .y_label = "expert",
              .value_label = "likeness",
              .rows = experts,
              .columns = experts,
              .least = 0,
              .most = 1};
  for (std::uint32_t a = 0; a < experts; ++a) {
    for (std::uint32_t b = 0; b < experts; ++b) {
      double both = 0, of_a = 0, of_b = 0;
      for (std::uint32_t c = 0; c < experts; ++c) {
        if (c == a || c == b) continue;
        const double x = s.Together(l, a, c), y = s.Together(l, b, c);
        both += x * y;
        of_a += x * x;
        of_b += y * y;
      }
      map.values.push_back(of_a * of_b > 0 ? both / std::sqrt(of_a * of_b) : a == b ? 1 : 0);
    }
  }
  return map;
}

// Which experts each domain uses in a layer, beside an even use.
HeatMap DomainUsesMap(const Statistics& s, std::size_t l) {
  HeatMap map{
      .title = fmt::format("Which experts each domain uses, layer {}", s.header().moe_layers[l]),
      .subtitle = "1: as often as if all were chosen alike",
      .x_label = "expert",
      .value_label = "times even",
      .rows = s.domains().size(),
      .columns = s.header().experts,
      .least = 0,
      .most = 4};
  for (const std::string& domain : s.domains()) {
    map.row_names.push_back(domain.empty() ? "(none)" : domain);
    for (std::uint32_t e = 0; e < s.header().experts; ++e) {
      map.values.push_back(s.DomainShare(domain, l, e) * s.header().experts);
    }
  }
  return map;
}

HeatMap DomainMap(const Statistics& s) {
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
  return map;
}

}  // namespace

std::string StatisticsPage(const std::string& trace, const TraceStatistics& s) {
  const TraceHeader& h = s.header();
  HtmlPage page{.title = fmt::format("Routing of {}", h.model),
                .text = fmt::format("{}: {} tokens, {} layers with experts, {} of {} experts a "
                                    "token.",
                                    trace, s.tokens(), Layers(s), h.top_k, h.experts)};
  page.sections.push_back({.heading = "Some experts are used more than others",
                           .text = "A cache that keeps the bright ones hits often. The further the "
                                   "entropy lies below the dashed line, the more there is to gain.",
                           .pictures = {UsesMap(s), EntropyChart(s), PopularityChart(s)}});
  page.sections.push_back(
      {.heading = "And what was used comes back",
       .text = "What is above chance on the left is what a least-recently-used cache lives on; how "
               "fast the working set grows says how large it has to be. If curves fall with the "
               "place by "
               "score, scores tell a cache what to keep.",
       .pictures = {ReuseChart(s), WorkingSetChart(s), RankChart(s)}});
  PageSection together{.heading = "Experts that go together",
                       .text =
                           "Bright spots are pairs that one token tends to choose both of. The "
                           "last map has experts as alike that are chosen with the same others.",
                       .pictures = {}};
  std::vector<std::size_t> some = {0, Layers(s) / 2, Layers(s) - 1};  // first, middle, last
  some.erase(std::unique(some.begin(), some.end()), some.end());
  if (h.experts > kMostMapped) {
    together.text = fmt::format("{} experts are too many for a map.", h.experts);
    some.clear();
  }
  for (const std::size_t l : some) {
    together.pictures.push_back(TogetherMap(s, l));
  }
  if (!some.empty()) together.pictures.push_back(CompanyMap(s, Layers(s) / 2));
  page.sections.push_back(std::move(together));
  if (s.domains().size() > 1) {
    page.sections.push_back(
        {.heading = "Domains differ",
         .text = "Where the numbers are large, what one kind of text makes hot "
                 "is of little use to another.",
         .pictures = {DomainMap(s), DomainUsesMap(s, 0), DomainUsesMap(s, Layers(s) / 2)}});
  }
  return ToHtml(page);
}

}  // namespace troupe
