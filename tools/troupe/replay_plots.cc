// Curves of what `troupe replay` found: a policy has a colour, what was tried with it a stroke.
#include <algorithm>
#include <functional>
#include <map>

#include "plot/html_page.h"
#include "plot/line_chart.h"
#include "troupe/replay_report.h"

namespace troupe {
namespace {

// By order of appearance.
std::size_t PlaceOf(std::vector<std::string>& seen, const std::string& name) {
  const auto found = std::ranges::find(seen, name);
  if (found != seen.end()) return static_cast<std::size_t>(found - seen.begin());
  seen.push_back(name);
  return seen.size() - 1;
}

class Strokes {
 public:
  LineSeries SeriesFor(const ReplaySpec& spec) {
    constexpr std::array kDashes = {LineDash::kSolid, LineDash::kDotted, LineDash::kDashDotted};
    const std::size_t variant = PlaceOf(variants_, VariantOf(spec));
    return {
        .name = NameOf(spec),
        .points = {},
        .dash = spec.policy == "optimum" ? LineDash::kDashed : kDashes[variant % kDashes.size()],
        .colour = PlaceOf(policies_, spec.policy)};
  }

 private:
  std::vector<std::string> policies_, variants_;
};

using ValueOf = std::function<double(const ReplayOutcome&)>;

LineChart OverBudgets(const ReplayReport& report, LineChart chart, const ValueOf& value) {
  chart.x_label = "experts in memory, of all";
  chart.x_unit = AxisUnit::kPercent;
  Strokes strokes;
  std::vector<std::string> order;
  for (const ReplayOutcome& outcome : report.outcomes) {
    const std::size_t place = PlaceOf(order, NameOf(outcome.spec));
    if (place == chart.series.size()) chart.series.push_back(strokes.SeriesFor(outcome.spec));
    chart.series[place].points.emplace_back(ShareOf(report, outcome.spec), value(outcome));
  }
  for (LineSeries& series : chart.series) std::ranges::sort(series.points);
  return chart;
}

LineChart HitChart(const ReplayReport& report) {
  return OverBudgets(
      report,
      {.title = fmt::format("Hits over the size of the cache: {}", report.header.model),
       .subtitle = report.trace.substr(report.trace.rfind('/') + 1),
       .y_label = "asks that found their expert",
       .y_unit = AxisUnit::kPercent,
       .y_most = 1.0},
      [](const ReplayOutcome& o) { return o.result.all.HitRate(); });
}

LineChart LoadChart(const ReplayReport& report) {
  const bool bytes = report.expert_bytes > 0;
  return OverBudgets(report,
                     {.title = "What is loaded",
                      .subtitle = bytes ? "MiB a token" : "experts a token",
                      .y_label = bytes ? "MiB a token" : "loads a token",
                      .y_least = 0.0},
                     [&, bytes](const ReplayOutcome& o) {
                       return bytes ? BytesPerToken(report, o.result) / (1 << 20)
                                    : PerToken(static_cast<double>(o.result.loads), o.result);
                     });
}

LineChart StallChart(const ReplayReport& report) {
  LineChart chart = OverBudgets(
      report,
      {.title = "Waiting for loads",
       .subtitle = "with the link and the speed of computing that were given",
       .y_label = "ms a token",
       .y_least = 0.0},
      [](const ReplayOutcome& o) { return 1e3 * PerToken(o.result.stall_seconds, o.result); });
  std::erase_if(chart.series, [](const LineSeries& series) {
    return series.name.starts_with("optimum");  // it has no time
  });
  return chart;
}

LineChart ReplacedChart(const ReplayReport& report) {
  LineChart chart =
      OverBudgets(report,
                  {.title = "Answered otherwise than exactly",
                   .subtitle = "share of the experts chosen",
                   .y_label = "replaced",
                   .y_unit = AxisUnit::kPercent,
                   .y_least = 0.0},
                  [](const ReplayOutcome& o) { return o.result.substitution.ReplacedShare(); });
  // Exact ones replace nothing.
  std::erase_if(chart.series, [&](const LineSeries& series) {
    return std::ranges::any_of(report.outcomes, [&](const ReplayOutcome& o) {
      return o.spec.substitution == "exact" && NameOf(o.spec) == series.name;
    });
  });
  return chart;
}

// The number of slots at which the policies differ most.
std::uint32_t MostTelling(const ReplayReport& report) {
  std::map<std::uint32_t, std::pair<double, double>> hits;  // least and most, by slots
  for (const ReplayOutcome& outcome : report.outcomes) {
    if (outcome.spec.policy == "optimum") continue;
    const double rate = outcome.result.all.HitRate();
    const auto [at, first] = hits.try_emplace(outcome.spec.slots, rate, rate);
    at->second = {std::min(at->second.first, rate), std::max(at->second.second, rate)};
  }
  if (hits.empty()) return report.outcomes.front().spec.slots;
  return std::ranges::max_element(
             hits, {}, [](const auto& entry) { return entry.second.second - entry.second.first; })
      ->first;
}

LineChart LayerChart(const ReplayReport& report, std::uint32_t slots) {
  LineChart chart{.title = "Hits by layer",
                  .subtitle = fmt::format("{} slots of {}", slots,
                                          report.header.moe_layers.size() * report.header.experts),
                  .x_label = "layer",
                  .y_label = "asks that found their expert",
                  .y_unit = AxisUnit::kPercent};
  Strokes strokes;
  for (const ReplayOutcome& outcome : report.outcomes) {
    if (outcome.spec.slots != slots) continue;
    LineSeries line = strokes.SeriesFor(outcome.spec);
    for (std::size_t l = 0; l < outcome.result.layers.size(); ++l) {
      line.points.emplace_back(report.header.moe_layers[l], outcome.result.layers[l].HitRate());
    }
    chart.series.push_back(std::move(line));
  }
  return chart;
}

}  // namespace

std::string Plot(const std::vector<ReplayReport>& reports, const std::string& name) {
  if (!name.ends_with(".html")) return ToSvg(HitChart(reports.front()));
  HtmlPage page{.title = "Replayed caches",
                .text =
                    "How often an expert was there when a layer asked for it, for each policy. "
                    "The dashed line is what a policy could reach that knows the future."};
  for (const ReplayReport& report : reports) {
    PageSection section{.heading = report.trace.substr(report.trace.rfind('/') + 1),
                        .text = fmt::format("{}: {} tokens.", report.header.model,
                                            report.outcomes.front().result.all.tokens),
                        .pictures = {HitChart(report), LoadChart(report)}};
    if (report.timed) section.pictures.push_back(StallChart(report));
    if (Substitutes(report)) section.pictures.push_back(ReplacedChart(report));
    section.pictures.push_back(LayerChart(report, MostTelling(report)));
    page.sections.push_back(std::move(section));
  }
  return ToHtml(page);
}

}  // namespace troupe
