#include "troupe/replay_report.h"

#include <algorithm>

#include "expert/prefetch/worth_prefetch.h"
#include "troupe/counted.h"
#include "troupe/foresight_figures.h"
#include "troupe/run_record.h"

namespace troupe {

double ShareOf(const ReplayReport& report, const ReplaySpec& spec) {
  return static_cast<double>(spec.slots) /
         static_cast<double>(report.header.moe_layers.size() * report.header.experts);
}

std::string VariantOf(const ReplaySpec& spec) {
  std::string variant;
  const auto add = [&](const std::string& part) {
    variant += variant.empty() ? part : ", " + part;
  };
  if (spec.shallow > 0) add(fmt::format("shallow {}", spec.shallow));
  if (spec.floor > 0) add(fmt::format("floor {:g} %", 100 * spec.floor));
  if (spec.policy == "echo" && spec.echo != EchoSettings()) add(ToString(spec.echo));
  if (spec.predictor != "none") add(spec.predictor);
  if (spec.substitution != "exact") add(spec.substitution);
  return variant;
}

std::string NameOf(const ReplaySpec& spec) {
  const std::string variant = VariantOf(spec);
  return variant.empty() ? spec.policy : fmt::format("{}, {}", spec.policy, variant);
}

double PerToken(double all, const ReplayResult& result) {
  return all / static_cast<double>(std::max<std::uint64_t>(1, result.all.tokens));
}

double BytesPerToken(const ReplayReport& report, const ReplayResult& result) {
  if (result.bytes > 0) return PerToken(static_cast<double>(result.bytes), result);
  return PerToken(static_cast<double>(result.loads * report.expert_bytes), result);
}

bool Substitutes(const ReplayReport& report) {
  return std::ranges::any_of(report.outcomes,
                             [](const ReplayOutcome& o) { return o.spec.substitution != "exact"; });
}

namespace {

// Of the same budget and shares; none if it was not played, or if other experts were asked for.
const ReplayOutcome* OptimumOf(const ReplayReport& report, const ReplaySpec& spec) {
  for (const ReplayOutcome& outcome : report.outcomes) {
    if (spec.substitution == "exact" && outcome.spec.policy == "optimum" &&
        outcome.spec.slots == spec.slots && outcome.spec.shallow == spec.shallow) {
      return &outcome;
    }
  }
  return nullptr;
}

std::size_t NameWidth(const ReplayReport& report) {
  std::size_t width = 18;
  for (const ReplayOutcome& o : report.outcomes) width = std::max(width, NameOf(o.spec).size());
  return width;
}

std::string Row(const ReplayReport& report, const ReplayOutcome& outcome) {
  const ReplayResult& r = outcome.result;
  std::string row =
      fmt::format("{:<{}} {:>6} {:>6.1f} % {:>7.2f} %", NameOf(outcome.spec), NameWidth(report),
                  outcome.spec.slots, 100 * ShareOf(report, outcome.spec), 100 * r.all.HitRate());
  const ReplayOutcome* optimum = OptimumOf(report, outcome.spec);
  row += optimum == nullptr
             ? fmt::format(" {:>9}", "")
             : fmt::format(" {:>9.2f}", 100 * (optimum->result.all.HitRate() - r.all.HitRate()));
  if (Substitutes(report)) {
    row += outcome.spec.substitution == "exact"
               ? fmt::format(" {:>9}", "")
               : fmt::format(" {:>7.2f} %", 100 * r.substitution.ReplacedShare());
  }
  row += fmt::format(" {:>9.2f}", PerToken(static_cast<double>(r.loads), r));
  if (report.expert_bytes > 0) {
    row += fmt::format(" {:>12}",
                       ToString(Bytes(static_cast<std::uint64_t>(BytesPerToken(report, r)))));
  }
  if (report.timed && outcome.spec.policy == "optimum") {
    row += fmt::format(" {:>10} {:>9} {:>10}", "", "", "");
  } else if (report.timed) {
    row +=
        fmt::format(" {:>10.3f} {:>9.3f} {:>10.1f}", 1e3 * PerToken(r.Time().overlapped_seconds, r),
                    1e3 * PerToken(r.stall_seconds, r),
                    r.Seconds() > 0 ? static_cast<double>(r.all.tokens) / r.Seconds() : 0);
  }
  const std::string foresight =
      ForesightFigures(r.prefetch.foresight, r.prefetch.loads, r.prefetch.useful + r.prefetch.late);
  if (!foresight.empty()) row += fmt::format("\n    {}", foresight);
  row += RecallFigures(r.prefetch.chances);
  if (r.elsewhere > 0) {
    row += fmt::format("\n    second lane: {:.2f} misses a token",
                       PerToken(static_cast<double>(r.elsewhere), r));
  }
  // Why it did not replace more.
  for (const ChainReport::Link& link : r.substitution.links) {
    row += fmt::format("\n    {}:", link.link);
    for (const NamedCount& count : link.counts)
      row += fmt::format(" {} {},", count.name, count.count);
    row.pop_back();
  }
  if (const SubstitutionCounts& c = r.substitution.counts; c.passed_over > 0) {
    row += fmt::format("\n    passed over: {} of {} layers of passes, of prompts or of many tokens",
                       c.passed_over, c.passed_over + c.layers);
  }
  return row;
}

Json ToJson(const ReplayCounts& counts) {
  return {{"tokens", counts.tokens},
          {"passes", counts.passes},
          {"asks", counts.asks},
          {"hits", counts.hits},
          {"hit_rate", counts.HitRate()}};
}

Json ToJson(const ChainReport& report) {
  const SubstitutionCounts& c = report.counts;
  Json json = {{"replaced_share", report.ReplacedShare()},
               {"passed_over", c.passed_over},
               {"slots", c.slots},
               {"missing", c.missing},
               {"waited", c.waited},
               {"substituted", c.substituted},
               {"low_bit", c.low_bit},
               {"dropped", c.dropped},
               {"tokens", c.tokens},
               {"tokens_changed", c.tokens_changed},
               {"loads_before", c.loads_before},
               {"loads_after", c.loads_after}};
  json["links"] = LinkCounts(report);
  return json;
}

Json ToJson(const ReplayReport& report, const ReplayOutcome& outcome) {
  const ReplaySpec& spec = outcome.spec;
  const ReplayResult& r = outcome.result;
  Json json = {{"policy", spec.policy},       {"predictor", spec.predictor},
               {"slots", spec.slots},         {"share", ShareOf(report, spec)},
               {"per_layer", spec.per_layer}, {"shallow", spec.shallow},
               {"spare", spec.spare},         {"substitution", spec.substitution},
               {"floor", spec.floor}};
  if (spec.policy == "echo") json["echo"] = ToString(spec.echo);
  json["hit_rate"] = r.all.HitRate();
  if (const ReplayOutcome* optimum = OptimumOf(report, spec)) {
    json["below_optimum"] = optimum->result.all.HitRate() - r.all.HitRate();
  }
  json["expert_hits"] = r.cache.hits;
  json["expert_misses"] = r.cache.misses + r.cache.joined;
  json["evictions"] = r.cache.evictions;
  json["loads"] = r.loads;
  json["elsewhere"] = r.elsewhere;
  json["loads_per_token"] = PerToken(static_cast<double>(r.loads), r);
  if (report.expert_bytes > 0) json["bytes_per_token"] = BytesPerToken(report, r);
  if (report.timed && spec.policy != "optimum") {
    json["stall_s_per_token"] = PerToken(r.stall_seconds, r);
    json["compute_s_per_token"] = PerToken(r.compute_seconds, r);
    json["time"] = ToJson(r.Time());
  }
  if (spec.substitution != "exact") json["substituted"] = ToJson(r.substitution);
  json["crowded_layers"] = r.crowded;
  json["begun_early"] = r.begun_early;
  json["all"] = ToJson(r.all);
  json["prefill"] = ToJson(r.prefill);
  json["decode"] = ToJson(r.decode);
  json["mixed"] = ToJson(r.mixed);
  json["prefetch"] = {{"loads", r.prefetch.loads},     {"useful", r.prefetch.useful},
                      {"late", r.prefetch.late},       {"cancelled", r.prefetch.cancelled},
                      {"wasted", r.prefetch.wasted},   {"asked", r.prefetch.asked},
                      {"guessed", r.prefetch.guessed}, {"expected", r.prefetch.expected}};
  json["prefetch"]["foresight"] = ToJson(r.prefetch.foresight);
  if (r.prefetch.chances.any()) json["prefetch"]["chances"] = ToJson(r.prefetch.chances);
  if (spec.predictor == WorthPrefetch::kName) {
    json["prefetch"]["score_tokens_known"] = r.prefetch.tokens_known;
    json["prefetch"]["score_tokens_learned"] = r.prefetch.tokens_learned;
  }
  Json layers = Json::Array();
  for (const ReplayCounts& layer : r.layers) layers.push_back(layer.HitRate());
  json["hit_rate_by_layer"] = std::move(layers);
  return json;
}

// Of what was played exactly, with the most slots short of all: which cache is best, and by how
// much.
void PrintBest(const ReplayReport& report) {
  const ReplayOutcome* best = nullptr;
  const ReplayOutcome* worst = nullptr;
  const auto is_better = [&](const ReplayOutcome& a, const ReplayOutcome& b) {
    const bool a_fits = ShareOf(report, a.spec) < 1, b_fits = ShareOf(report, b.spec) < 1;
    if (a_fits != b_fits) return a_fits;
    if (a.spec.slots != b.spec.slots) return a.spec.slots > b.spec.slots;
    return a.result.all.HitRate() > b.result.all.HitRate();
  };
  for (const ReplayOutcome& outcome : report.outcomes) {
    if (outcome.spec.policy == "optimum" || outcome.spec.substitution != "exact") continue;
    if (best == nullptr || is_better(outcome, *best)) best = &outcome;
  }
  if (best == nullptr) best = &report.outcomes.front();
  for (const ReplayOutcome& outcome : report.outcomes) {
    const bool same = outcome.spec.slots == best->spec.slots && outcome.spec.policy != "optimum" &&
                      outcome.spec.substitution == "exact";
    if (same && (worst == nullptr || outcome.result.all.HitRate() < worst->result.all.HitRate())) {
      worst = &outcome;
    }
  }
  fmt::print(
      "best cache: {}, which has {:.2f} % of the experts that are used with {} in memory ({:.1f} % "
      "of all)",
      NameOf(best->spec), 100 * best->result.all.HitRate(), Counted(best->spec.slots, "slot"),
      100 * ShareOf(report, best->spec));
  if (worst != nullptr && worst != best) {
    fmt::print("; worst: {}, {:.2f} %", NameOf(worst->spec), 100 * worst->result.all.HitRate());
  }
  if (const ReplayOutcome* optimum = OptimumOf(report, best->spec)) {
    fmt::print("; none can have more than {:.2f} %", 100 * optimum->result.all.HitRate());
  }
  fmt::print("\n");
}

}  // namespace

void Print(const ReplayReport& report) {
  PrintBest(report);
  const ReplayResult& first = report.outcomes.front().result;
  fmt::print("{}: {}, {} tokens in {} passes\n", report.trace, report.header.model,
             first.all.tokens, first.all.passes);
  fmt::print("{:<{}} {:>6} {:>8} {:>9} {:>9}", "cache", NameWidth(report), "slots", "of all",
             "hits", "pp to opt");
  if (Substitutes(report)) fmt::print(" {:>9}", "replaced");
  fmt::print(" {:>9}", "loads/tok");
  if (report.expert_bytes > 0) fmt::print(" {:>12}", "bytes/token");
  if (report.timed) {
    fmt::print(" {:>10} {:>9} {:>10}", "overlap ms", "stall ms", "tokens/s");
  }
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
  json["tokens_lost"] = report.damage.tokens;  // to damage, as far as is known
  json["damaged_places"] = report.damage.places;
  json["results"] = Json::Array();
  for (const ReplayOutcome& outcome : report.outcomes) {
    json["results"].push_back(ToJson(report, outcome));
  }
  return json;
}

}  // namespace troupe
