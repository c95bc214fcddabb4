#include "troupe/replay_report.h"

#include <algorithm>
#include <map>

#include "plot/html_page.h"
#include "plot/line_chart.h"

namespace troupe {
namespace {

double ShareOf(const ReplayReport& report, const ReplaySpec& spec) {
  return static_cast<double>(spec.slots) /
         static_cast<double>(report.header.moe_layers.size() * report.header.experts);
}

std::string NameOf(const ReplaySpec& spec) {
  return spec.predictor == "none" ? spec.policy
                                  : fmt::format("{}, {}", spec.policy, spec.predictor);
}

// Of the same budget; none if it was not played.
const ReplayOutcome* OptimumOf(const ReplayReport& report, std::uint32_t slots) {
  for (const ReplayOutcome& outcome : report.outcomes) {
    if (outcome.spec.policy == "optimum" && outcome.spec.slots == slots) return &outcome;
  }
  return nullptr;
}

double PerToken(double all, const ReplayResult& result) {
  return all / static_cast<double>(std::max<std::uint64_t>(1, result.all.tokens));
}

double BytesPerToken(const ReplayReport& report, const ReplayResult& result) {
  if (result.bytes > 0) return PerToken(static_cast<double>(result.bytes), result);
  return PerToken(static_cast<double>(result.loads * report.expert_bytes), result);
}

std::string Row(const ReplayReport& report, const ReplayOutcome& outcome) {
  const ReplayResult& r = outcome.result;
  std::string row =
      fmt::format("{:<18} {:>6} {:>6.1f} % {:>7.2f} %", NameOf(outcome.spec), outcome.spec.slots,
                  100 * ShareOf(report, outcome.spec), 100 * r.all.HitRate());
  const ReplayOutcome* optimum = OptimumOf(report, outcome.spec.slots);
  row += optimum == nullptr
             ? fmt::format(" {:>9}", "")
             : fmt::format(" {:>9.2f}", 100 * (optimum->result.all.HitRate() - r.all.HitRate()));
  row += fmt::format(" {:>9.2f}", PerToken(static_cast<double>(r.loads), r));
  if (report.expert_bytes > 0) {
    row += fmt::format(" {:>12}",
                       ToString(Bytes(static_cast<std::uint64_t>(BytesPerToken(report, r)))));
  }
  if (report.timed) {
    row += fmt::format(" {:>9.3f} {:>10.1f}", 1e3 * PerToken(r.stall_seconds, r),
                       r.Seconds() > 0 ? static_cast<double>(r.all.tokens) / r.Seconds() : 0);
  }
  return row;
}

LineChart ChartOf(const ReplayReport& report) {
  LineChart chart{.title = fmt::format("Hits over the size of the cache: {}", report.header.model),
                  .subtitle = report.trace.substr(report.trace.rfind('/') + 1),
                  .x_label = "experts in memory, of all",
                  .y_label = "asks that found their expert",
                  .x_unit = AxisUnit::kPercent,
                  .y_unit = AxisUnit::kPercent,
                  .y_most = 1.0};
  std::vector<std::string> order;
  std::map<std::string, LineSeries> series;
  for (const ReplayOutcome& outcome : report.outcomes) {
    const std::string name = NameOf(outcome.spec);
    if (!series.contains(name)) order.push_back(name);
    LineSeries& line = series[name];
    line.name = name;
    line.dashed = outcome.spec.policy == "optimum";
    line.points.emplace_back(ShareOf(report, outcome.spec), outcome.result.all.HitRate());
  }
  for (const std::string& name : order) {
    std::ranges::sort(series[name].points);
    chart.series.push_back(series[name]);
  }
  return chart;
}

LineChart LayerChartOf(const ReplayReport& report, std::uint32_t slots) {
  LineChart chart{.title = "Hits by layer",
                  .subtitle = fmt::format("{} slots of {}", slots,
                                          report.header.moe_layers.size() * report.header.experts),
                  .x_label = "layer",
                  .y_label = "asks that found their expert",
                  .y_unit = AxisUnit::kPercent};
  for (const ReplayOutcome& outcome : report.outcomes) {
    if (outcome.spec.slots != slots) continue;
    LineSeries line{.name = NameOf(outcome.spec), .dashed = outcome.spec.policy == "optimum"};
    for (std::size_t l = 0; l < outcome.result.layers.size(); ++l) {
      line.points.emplace_back(report.header.moe_layers[l], outcome.result.layers[l].HitRate());
    }
    chart.series.push_back(std::move(line));
  }
  return chart;
}

Json ToJson(const ReplayCounts& counts) {
  return {{"tokens", counts.tokens},
          {"passes", counts.passes},
          {"asks", counts.asks},
          {"hits", counts.hits},
          {"hit_rate", counts.HitRate()}};
}

Json ToJson(const ReplayReport& report, const ReplayOutcome& outcome) {
  const ReplaySpec& spec = outcome.spec;
  const ReplayResult& r = outcome.result;
  Json json = {{"policy", spec.policy},       {"predictor", spec.predictor},
               {"slots", spec.slots},         {"share", ShareOf(report, spec)},
               {"per_layer", spec.per_layer}, {"shallow", spec.shallow},
               {"spare", spec.spare}};
  json["hit_rate"] = r.all.HitRate();
  if (const ReplayOutcome* optimum = OptimumOf(report, spec.slots)) {
    json["below_optimum"] = optimum->result.all.HitRate() - r.all.HitRate();
  }
  json["expert_hits"] = r.cache.hits;
  json["expert_misses"] = r.cache.misses + r.cache.joined;
  json["evictions"] = r.cache.evictions;
  json["loads"] = r.loads;
  json["loads_per_token"] = PerToken(static_cast<double>(r.loads), r);
  if (report.expert_bytes > 0) json["bytes_per_token"] = BytesPerToken(report, r);
  if (report.timed) {
    json["stall_s_per_token"] = PerToken(r.stall_seconds, r);
    json["compute_s_per_token"] = PerToken(r.compute_seconds, r);
  }
  json["crowded_layers"] = r.crowded;
  json["all"] = ToJson(r.all);
  json["prefill"] = ToJson(r.prefill);
  json["decode"] = ToJson(r.decode);
  json["prefetch"] = {{"loads", r.prefetch.loads},     {"useful", r.prefetch.useful},
                      {"late", r.prefetch.late},       {"cancelled", r.prefetch.cancelled},
                      {"wasted", r.prefetch.wasted},   {"asked", r.prefetch.asked},
                      {"guessed", r.prefetch.guessed}, {"expected", r.prefetch.expected}};
  Json layers = Json::array();
  for (const ReplayCounts& layer : r.layers) layers.push_back(layer.HitRate());
  json["hit_rate_by_layer"] = std::move(layers);
  return json;
}

}  // namespace

void Print(const ReplayReport& report) {
  const ReplayResult& first = report.outcomes.front().result;
  fmt::print("{}: {}, {} tokens in {} passes\n", report.trace, report.header.model,
             first.all.tokens, first.all.passes);
  fmt::print("{:<18} {:>6} {:>8} {:>9} {:>9} {:>9}", "cache", "slots", "of all", "hits", "to best",
             "loads/tok");
  if (report.expert_bytes > 0) fmt::print(" {:>12}", "bytes/token");
  if (report.timed) fmt::print(" {:>9} {:>10}", "stall ms", "tokens/s");
  fmt::print("\n");
  for (const ReplayOutcome& outcome : report.outcomes) fmt::print("{}\n", Row(report, outcome));
  std::uint64_t uses = 0;
  for (const ReplayOutcome& outcome : report.outcomes) {
    uses += outcome.result.all.tokens * report.header.moe_layers.size() * report.header.top_k;
  }
  fmt::print("{} caches in {:.2f} s: {:.1f} million expert uses a second\n\n",
             report.outcomes.size(), report.seconds,
             1e-6 * static_cast<double>(uses) / std::max(report.seconds, 1e-9));
}

Json ToJson(const ReplayReport& report) {
  Json json;
  json["trace"] = report.trace;
  json["model"] = report.header.model;
  json["layers"] = report.header.moe_layers.size();
  json["experts"] = report.header.experts;
  json["top_k"] = report.header.top_k;
  json["tokens"] = report.outcomes.front().result.all.tokens;
  json["pass"] = report.group;
  json["replay_s"] = report.seconds;
  json["results"] = Json::array();
  for (const ReplayOutcome& outcome : report.outcomes) {
    json["results"].push_back(ToJson(report, outcome));
  }
  return json;
}

std::string Plot(const std::vector<ReplayReport>& reports, const std::string& name) {
  if (!name.ends_with(".html")) return ToSvg(ChartOf(reports.front()));
  HtmlPage page{.title = "Replayed caches",
                .text =
                    "How often an expert was there when a layer asked for it, for each policy. "
                    "The dashed line is what a policy could reach that knows the future."};
  for (const ReplayReport& report : reports) {
    const std::uint32_t slots = report.outcomes[report.outcomes.size() / 2].spec.slots;
    page.sections.push_back({.heading = report.trace.substr(report.trace.rfind('/') + 1),
                             .text = fmt::format("{}: {} tokens.", report.header.model,
                                                 report.outcomes.front().result.all.tokens),
                             .svgs = {ToSvg(ChartOf(report)), ToSvg(LayerChartOf(report, slots))}});
  }
  return ToHtml(page);
}

}  // namespace troupe
