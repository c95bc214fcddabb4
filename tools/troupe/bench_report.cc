#include "troupe/bench_report.h"

#include <fmt/format.h>

#include <algorithm>

#include "kernels/target.h"
#include "troupe/counted.h"

namespace troupe {
namespace {

double Median(std::vector<double> values) {
  std::sort(values.begin(), values.end());
  const std::size_t n = values.size();
  return n % 2 == 1 ? values[n / 2] : (values[n / 2 - 1] + values[n / 2]) / 2;
}

double Longest(const std::vector<double>& gaps) {
  return *std::max_element(gaps.begin(), gaps.end());
}

// The fastest that any of the passes saw.
double DiskSpeed(const BenchFigures& figures) {
  double fastest = 0;
  for (const BatchSpeed& speed : figures.together) {
    fastest = std::max(fastest, speed.disk_bytes_per_s);
  }
  return fastest;
}

double Limit(const BenchFigures& figures, const BatchSpeed& speed, bool with_attended = false) {
  return LimitTokensPerSecond(speed, figures.memory_bytes_per_s, DiskSpeed(figures), with_attended);
}

void PrintAlone(const BenchFigures& figures) {
  const auto touched = static_cast<double>(figures.touched_per_token.count());
  fmt::print("{:<7}  {:>13}  {:>6}  {:>8}  {:>18}  {:>21}\n", "phase", "tokens before", "tokens",
             "tokens/s", "weights read, GB/s", "of the memory's speed");
  for (const LoneSpeed& m : figures.prefill) {
    fmt::print("{:<7}  {:>13}  {:>6}  {:>8.1f}\n", "prefill", m.prompt, m.tokens,
               Median(m.per_second));
  }
  for (const LoneSpeed& m : figures.decode) {
    const double rate = Median(m.per_second) * touched;
    fmt::print("{:<7}  {:>13}  {:>6}  {:>8.1f}  {:>18.2f}  {:>19.0f} %\n", "decode", m.prompt,
               m.tokens, Median(m.per_second), rate / 1e9, 100 * rate / figures.memory_bytes_per_s);
  }
}

// What most people want to know, of the longest prompt.
void PrintFirst(const BenchFigures& figures) {
  std::vector<std::string> parts;
  if (!figures.decode.empty()) {
    parts.push_back(
        fmt::format("{:.1f} tokens/s of an answer", Median(figures.decode.back().per_second)));
  }
  if (!figures.prefill.empty()) {
    parts.push_back(
        fmt::format("{:.1f} tokens/s of a prompt", Median(figures.prefill.back().per_second)));
  }
  if (!figures.together.empty()) {
    const BatchSpeed& most = figures.together.back();
    parts.push_back(fmt::format("{:.1f} tokens/s of {} answers together", Median(most.tokens_per_s),
                                most.sequences));
  }
  parts.push_back(fmt::format("{} of memory at most", ToString(figures.peak)));
  fmt::print("{}\n\n", fmt::join(parts, ", "));
}

void PrintTogether(const BenchFigures& figures) {
  fmt::print("\n{:>9}  {:>8}  {:>15}  {:>15}  {:>8}  {:>17}  {:>12}  {:>19}  {:>14}\n", "sequences",
             "tokens/s", "prompt tokens/s", "limit, tokens/s", "of limit", "with KV, tokens/s",
             "experts/pass", "experts/prompt pass", "disk read/pass");
  for (const BatchSpeed& speed : figures.together) {
    const double rate = Median(speed.tokens_per_s), limit = Limit(figures, speed);
    fmt::print(
        "{:>9}  {:>8.1f}  {:>15.1f}  {:>15.1f}  {:>6.0f} %  {:>17.1f}  {:>12.1f}  {:>19.1f}  "
        "{:>14}\n",
        speed.sequences, rate, Median(speed.prompt_tokens_per_s), limit, 100 * rate / limit,
        Limit(figures, speed, true), speed.experts_a_pass, speed.prompt_experts_a_pass,
        ToString(Bytes(static_cast<std::uint64_t>(speed.read_bytes))));
  }
  fmt::print(
      "tokens/s: all sequences decode in one pass; prompt tokens/s: one prompt is read in chunks "
      "of as many tokens; limit: every weight that a pass needs is read from memory once{}; "
      "with KV: and what attention reads of the sequences\n\n",
      DiskSpeed(figures) > 0 ? fmt::format(", or what it misses from the disk at {:.2f} GB/s",
                                           DiskSpeed(figures) / 1e9)
                             : std::string());
}

void PrintJoin(const BenchFigures& figures) {
  const JoinTimes& join = *figures.join;
  fmt::print(
      "a prompt of {} tokens joins {} sequences that decode: {:.1f} ms between a sequence's tokens "
      "(median), {:.1f} ms at most, {:.1f} ms before; the prompt took {:.2f} s, alone {:.2f} s\n\n",
      figures.joined_prompt, kJoinedSequences, 1e3 * Median(join.gaps), 1e3 * Longest(join.gaps),
      1e3 * Median(join.gaps_before), join.prompt_seconds, join.prompt_seconds_alone);
}

Json ToJson(const std::vector<LoneSpeed>& all) {
  Json list = Json::Array();
  for (const LoneSpeed& m : all) {
    list.push_back({{"prompt", m.prompt},
                    {"tokens", m.tokens},
                    {"median", Median(m.per_second)},
                    {"tokens_per_s", m.per_second}});
  }
  return list;
}

Json TogetherJson(const BenchFigures& figures) {
  Json list = Json::Array();
  for (const BatchSpeed& speed : figures.together) {
    list.push_back({{"sequences", speed.sequences},
                    {"tokens_per_s", Median(speed.tokens_per_s)},
                    {"prompt_tokens_per_s", Median(speed.prompt_tokens_per_s)},
                    {"limit_tokens_per_s", Limit(figures, speed)},
                    {"limit_with_kv_tokens_per_s", Limit(figures, speed, true)},
                    {"experts_a_pass", speed.experts_a_pass},
                    {"prompt_experts_a_pass", speed.prompt_experts_a_pass},
                    {"weight_bytes_a_pass", speed.weight_bytes},
                    {"attended_bytes_a_pass", speed.attended_bytes},
                    {"read_bytes_a_pass", speed.read_bytes},
                    {"disk_bytes_per_s", speed.disk_bytes_per_s}});
  }
  return list;
}

Json JoinJson(const BenchFigures& figures) {
  const JoinTimes& join = *figures.join;
  return {{"sequences", kJoinedSequences},
          {"prompt_tokens", figures.joined_prompt},
          {"median_gap_s", Median(join.gaps)},
          {"longest_gap_s", Longest(join.gaps)},
          {"median_gap_before_s", Median(join.gaps_before)},
          {"prompt_seconds", join.prompt_seconds},
          {"prompt_seconds_alone", join.prompt_seconds_alone}};
}

}  // namespace

void PrintBench(const BenchFigures& figures) {
  PrintFirst(figures);
  PrintAlone(figures);
  if (!figures.together.empty()) PrintTogether(figures);
  if (figures.join) PrintJoin(figures);
  fmt::print("{} of weights a token; peak memory {}\n", ToString(figures.touched_per_token),
             ToString(figures.peak));
  fmt::print(
      "{} on {} read{} {:.1f} GB/s of memory, measured with a buffer of {}: with it the "
      "process had up to {}\n",
      Counted(figures.threads, "thread"), Name(ActiveTarget()), figures.threads == 1 ? "s" : "",
      figures.memory_bytes_per_s / 1e9, ToString(figures.probe), ToString(figures.peak_with_probe));
}

Json BenchRecord(const BenchFigures& figures) {
  Json record;
  record["model"] = figures.model;
  record["threads"] = figures.threads;
  record["target"] = Name(ActiveTarget());
  record["prefill"] = ToJson(figures.prefill);
  record["decode"] = ToJson(figures.decode);
  if (!figures.together.empty()) record["together"] = TogetherJson(figures);
  if (figures.join) record["join"] = JoinJson(figures);
  record["load_s"] = figures.load_seconds;
  record["bytes_touched_per_token"] = figures.touched_per_token.count();
  record["read_bandwidth_bytes_per_s"] = figures.memory_bytes_per_s;
  record["read_bandwidth_buffer_bytes"] = figures.probe.count();
  record["memory_budget_bytes"] = figures.budget.count();
  record["peak_rss_bytes"] = figures.peak.count();
  record["peak_with_bandwidth_bytes"] = figures.peak_with_probe.count();
  return record;
}

}  // namespace troupe
