#include "troupe/placement_plots.h"

#include <fmt/core.h>

#include <algorithm>
#include <functional>
#include <numeric>
#include <vector>

#include "plot/heat_map.h"
#include "plot/html_page.h"
#include "plot/line_chart.h"

namespace troupe {
namespace {

constexpr std::size_t kMostServersMapped = 8, kMostNumbered = 16;
constexpr double kMostTimesEven = 4;
constexpr std::size_t kWindows = 60;  // of time, along a chart

std::vector<std::string> ServerNames(const PlacementProblem& problem) {
  std::vector<std::string> names;
  for (const PlacementServer& server : problem.servers) names.push_back(server.name);
  return names;
}

// Methods by servers, with the numbers in the cells where they fit.
HeatMap MethodMap(const PlacementProblem& problem, HeatMap map) {
  map.rows = map.row_names.size();
  map.columns = problem.server_count();
  map.column_names = ServerNames(problem);
  map.numbers = map.columns <= kMostNumbered;
  return map;
}

HeatMap LocalMap(const PlacementProblem& problem, std::span<const PlacedExperts> placed) {
  HeatMap map{.title = "Expert calls that stay on their server",
              .subtitle = "by method, of the calls of each server's users",
              .value_label = "local",
              .unit = AxisUnit::kPercent,
              .least = 0,
              .most = 1};
  for (const PlacedExperts& one : placed) {
    map.row_names.push_back(one.method);
    for (std::size_t n = 0; n < problem.servers.size(); ++n) {
      const std::vector<double>& asked = problem.servers[n].activations;
      const double all = std::accumulate(asked.begin(), asked.end(), 0.0);
      map.values.push_back(all > 0 ? 1 - one.calls.by_server[n] / all : 1);
    }
  }
  return MethodMap(problem, std::move(map));
}

// How often a server's users ask for the experts that it holds, or for those that it lacks.
HeatMap AskedMap(const PlacementProblem& problem, const HolderTable& holders, std::uint32_t server,
                 bool held) {
  const ExpertTable& experts = problem.experts;
  std::uint32_t columns = 0;
  for (std::uint32_t l = 0; l < experts.layers(); ++l) {
    columns = std::max(columns, experts.CountIn(l));
  }
  HeatMap map{
      .title = fmt::format("{} {}", problem.servers[server].name, held ? "holds" : "lacks"),
      .subtitle = held ? "how often its users ask for what it holds; 1: as often as for all alike"
                       : "how often its users ask for what others hold",
      .x_label = "expert",
      .y_label = "layer",
      .value_label = "times even",
      .rows = experts.layers(),
      .columns = columns,
      .least = 0,
      .most = kMostTimesEven};
  map.values.assign(map.rows * map.columns, 0);
  for (std::uint32_t l = 0; l < experts.layers(); ++l) {
    const std::span<const double> asked = problem.Activations(server, l);
    const double all = std::accumulate(asked.begin(), asked.end(), 0.0);
    for (std::uint32_t e = 0; e < asked.size() && all > 0; ++e) {
      if (holders.Holds(server, experts.FirstOf(l) + e) != held) continue;
      map.values[l * map.columns + e] = asked[e] * static_cast<double>(asked.size()) / all;
    }
  }
  return map;
}

using SampleValue = std::function<std::optional<double>(const TimelineSample&)>;

// Samples joined into windows: a line that can be read.
LineChart OverTime(std::span<const SimulatedMethod> runs, LineChart chart,
                   const SampleValue& value) {
  chart.x_label = "time since the start, s";
  chart.dots = false;
  for (const SimulatedMethod& run : runs) {
    LineSeries series{.name = run.method};
    const std::vector<TimelineSample>& samples = run.result.timeline;
    const std::size_t each = std::max<std::size_t>(1, (samples.size() + kWindows - 1) / kWindows);
    for (std::size_t first = 0; first < samples.size(); first += each) {
      TimelineSample window;
      for (std::size_t i = first; i < std::min(first + each, samples.size()); ++i) {
        window.seconds = samples[i].seconds;
        window.local += samples[i].local;
        window.remote += samples[i].remote;
        window.answered += samples[i].answered;
        window.latency_sum += samples[i].latency_sum;
      }
      if (const auto y = value(window)) series.points.emplace_back(window.seconds, *y);
    }
    chart.series.push_back(std::move(series));
  }
  return chart;
}

LineChart LatencyChart(std::span<const SimulatedMethod> runs, const std::string& title) {
  return OverTime(runs,
                  {.title = "Time of a prompt",
                   .subtitle = title + ", mean of those that end at about the same time",
                   .y_label = "time of a prompt, s",
                   .y_least = 0.0},
                  [](const TimelineSample& s) -> std::optional<double> {
                    if (s.answered == 0) return std::nullopt;
                    return s.latency_sum / static_cast<double>(s.answered);
                  });
}

LineChart LocalChart(std::span<const SimulatedMethod> runs, const std::string& title) {
  return OverTime(runs,
                  {.title = "Expert calls that stay on their server",
                   .subtitle = title,
                   .y_label = "local",
                   .y_unit = AxisUnit::kPercent},
                  [](const TimelineSample& s) -> std::optional<double> {
                    if (s.local + s.remote == 0) return std::nullopt;
                    return static_cast<double>(s.local) / static_cast<double>(s.local + s.remote);
                  });
}

HeatMap ServerMap(const PlacementProblem& problem, std::span<const SimulatedMethod> runs,
                  HeatMap map, double (*value)(const ServerResult&)) {
  for (const SimulatedMethod& run : runs) {
    map.row_names.push_back(run.method);
    for (const ServerResult& server : run.result.servers) map.values.push_back(value(server));
  }
  return MethodMap(problem, std::move(map));
}

bool IsPage(const std::string& file) { return file.ends_with(".html"); }

}  // namespace

std::string PlotPlaced(const PlacementProblem& problem, std::span<const PlacedExperts> placed,
                       const std::string& file) {
  const HeatMap local = LocalMap(problem, placed);
  if (!IsPage(file)) return ToSvg(local);
  HtmlPage page{.title = "Where experts live",
                .text =
                    "An expert that a server's users ask for and that it holds is answered there; "
                    "any other call crosses a link."};
  page.sections.push_back({.heading = "What stays local", .text = {}, .pictures = {local}});
  const PlacedExperts& last = placed.back();
  const HolderTable holders(problem, last.placement);
  PageSection servers{
      .heading = fmt::format("What each server holds, placed by {}", last.method),
      .text = "Bright spots on the left are calls that stay, those on the right calls that leave.",
      .pictures = {}};
  const auto shown = std::min<std::size_t>(problem.servers.size(), kMostServersMapped);
  for (std::uint32_t n = 0; n < shown; ++n) {
    for (const bool held : {true, false}) {
      servers.pictures.push_back(AskedMap(problem, holders, n, held));
    }
  }
  if (shown < problem.servers.size()) {
    servers.text += fmt::format(" The first {} of {} servers.", shown, problem.servers.size());
  }
  page.sections.push_back(std::move(servers));
  return ToHtml(page);
}

std::string PlotSimulated(const PlacementProblem& problem, std::span<const SimulatedMethod> runs,
                          const std::string& title, const std::string& file) {
  const LineChart latency = LatencyChart(runs, title);
  if (!IsPage(file)) return ToSvg(latency);
  const HeatMap means = ServerMap(problem, runs,
                                  {.title = "Mean time of a prompt",
                                   .subtitle = "seconds, by method and server",
                                   .value_label = "seconds",
                                   .least = 0},
                                  [](const ServerResult& s) { return s.latency.mean(); });
  const HeatMap local = ServerMap(problem, runs,
                                  {.title = "Calls that stay local",
                                   .subtitle = "by method and server",
                                   .value_label = "local",
                                   .unit = AxisUnit::kPercent,
                                   .least = 0,
                                   .most = 1},
                                  [](const ServerResult& s) {
                                    const auto all =
                                        static_cast<double>(s.local + s.remote + s.loaded);
                                    return all > 0 ? static_cast<double>(s.local) / all : 1.0;
                                  });
  const HtmlPage page{
      .title = fmt::format("{}: a cluster, simulated", title),
      .text =
          "The same prompts, served by the same machines, which hold experts as each method "
          "places them.",
      .sections = {
          {.heading = "Over time", .text = {}, .pictures = {latency, LocalChart(runs, title)}},
          {.heading = "By server", .text = {}, .pictures = {means, local}}}};
  return ToHtml(page);
}

}  // namespace troupe
