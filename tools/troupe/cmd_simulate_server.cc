// `troupe simulate-server`: what clients of one server would see, by the engine's own policy of
// passes on a virtual clock. A cluster of servers is `troupe simulate`'s, a live server `troupe
// bench-server`'s.
#include <fmt/core.h>

#include <algorithm>
#include <optional>
#include <string>
#include <vector>

#include "sim/batch_play.h"
#include "sim/trace_file.h"
#include "troupe/commands.h"
#include "troupe/json_record.h"
#include "troupe/options.h"

namespace troupe {
namespace {

constexpr double kLongestMs = 1e9;

class SimulateServerCommand final : public Command {
 public:
  void AddOptions(Options& options) override {
    options
        .Add("REQUESTS", in_,
             "Recorded requests: Azure's CSV (TIMESTAMP, ContextTokens, GeneratedTokens) or "
             "Mooncake's JSON lines, also compressed (.zst)")
        .Required()
        .Type("FILE");
    options.Heading("Load");
    options.Add("--requests", most_, "Take the first N requests (all)")
        .Between(std::size_t{1}, std::size_t{100'000'000})
        .Type("N");
    options.Add("--times", times_, "Stretch the time between requests by this factor (1)")
        .Between(1e-6, 1e6)
        .Type("X");
    options.Add("--timeout-s", timeout_s_, "Time after which a request is dropped (never)")
        .Between(1e-3, 1e9)
        .Type("S");
    options.Heading("What a pass takes");
    options.Add("--pass-cost-ms", pass_ms_, "By itself (1)").Between(0.0, kLongestMs).Type("MS");
    options.Add("--row-cost-ms", row_ms_, "For each row (1)").Between(1e-6, kLongestMs).Type("MS");
    options.Add("--expert-cost-ms", expert_ms_, "For each expert that some row needs (0.05)")
        .Between(0.0, kLongestMs)
        .Type("MS");
    options.Add("--layers", setup_.costs.layers, "Layers with experts (24)")
        .Between(1u, 1000u)
        .Type("N");
    options.Add("--experts", setup_.costs.experts, "Experts of a layer (64)")
        .Between(1u, 100'000u)
        .Type("N");
    options.Add("--top-k", setup_.costs.top_k, "Experts that a token takes of a layer (8)")
        .Between(1u, 100'000u)
        .Type("N");
    options.Heading("The server");
    options.Add("--parallel", setup_.sequences, "Requests that are answered at the same time (16)")
        .Between(1u, 10'000u)
        .Type("N");
    options
        .Add("--pass-ms", target_ms_,
             "Time that a pass should take while others wait for their next token (150)")
        .Between(0.1, kLongestMs)
        .Type("MS");
    options.Add("--rows", setup_.limits.most_rows, "Most rows of a pass (512)")
        .Between(1u, 100'000u)
        .Type("N");
    options.Heading(kOutputHeading);
    AddJsonOption(options, json_);
  }

  Status CheckUsage() const override {
    if (setup_.costs.top_k <= setup_.costs.experts) return OkStatus();
    return InvalidArgument("--top-k {}: a layer has {} experts (--experts)", setup_.costs.top_k,
                           setup_.costs.experts);
  }

  Status Run() override {
    TROUPE_ASSIGN_OR_RETURN(const std::vector<RecordedRequest> recorded, ReadRequests(in_));
    std::vector<PlayedRequest> requests;
    for (RecordedRequest request : recorded) {
      if (requests.size() == most_) break;
      request.seconds *= times_;
      requests.push_back({.recorded = request, .timeout_s = timeout_s_});
    }
    setup_.costs.pass_seconds = pass_ms_ * 1e-3;
    setup_.costs.row_seconds = row_ms_ * 1e-3;
    setup_.costs.expert_seconds = expert_ms_ * 1e-3;
    setup_.limits.target_seconds = target_ms_ * 1e-3;
    const BatchPlayResult result = PlayBatches(requests, setup_);
    if (json_ != "-") Print(result);
    return json_.empty() ? OkStatus() : WriteJson(Record(result), json_);
  }

 private:
  static void PrintTimes(const char* name, const TimeHistogram& times) {
    fmt::print("{:<20} {:>9.1f} {:>9.1f} {:>9.1f} {:>9.1f}\n", name, times.Quantile(0.5) * 1e3,
               times.Quantile(0.9) * 1e3, times.Quantile(0.99) * 1e3, times.greatest() * 1e3);
  }

  static void Print(const BatchPlayResult& result) {
    fmt::print("{} answered, {} dropped in {:.0f} s: {:.1f} tokens/s, {:.1f} prompt tokens/s\n",
               result.answered, result.dropped, result.seconds, result.TokensPerSecond(),
               result.seconds > 0 ? static_cast<double>(result.prompt_tokens) / result.seconds : 0);
    fmt::print("{} passes of {:.1f} rows; at most {} in a row without one of a request's\n",
               result.passes,
               static_cast<double>(result.rows) /
                   static_cast<double>(std::max<std::uint64_t>(1, result.passes)),
               result.most_passed_over);
    fmt::print("{:<20} {:>9} {:>9} {:>9} {:>9}\n", "milliseconds", "p50", "p90", "p99", "longest");
    PrintTimes("to the first token", result.first);
    PrintTimes("between tokens", result.gap);
    PrintTimes("a pass", result.pass);
  }

  static Json Times(const TimeHistogram& times) {
    return Json{{"count", times.count()},
                {"p50", times.Quantile(0.5)},
                {"p90", times.Quantile(0.9)},
                {"p99", times.Quantile(0.99)},
                {"max", times.greatest()}};
  }

  static Json Record(const BatchPlayResult& result) {
    return Json{{"answered", result.answered},
                {"dropped", result.dropped},
                {"seconds", result.seconds},
                {"tokens", result.generated},
                {"prompt_tokens", result.prompt_tokens},
                {"tokens_per_s", result.TokensPerSecond()},
                {"passes", result.passes},
                {"rows", result.rows},
                {"most_passed_over", result.most_passed_over},
                {"time_to_first_token_s", Times(result.first)},
                {"time_between_tokens_s", Times(result.gap)},
                {"pass_s", Times(result.pass)}};
  }

  std::string in_, json_;
  std::optional<std::size_t> most_;
  std::optional<double> timeout_s_;
  double times_ = 1, pass_ms_ = 1, row_ms_ = 1, expert_ms_ = 0.05, target_ms_ = 150;
  EngineSetup setup_{
      .costs = {.layers = 24, .experts = 64, .top_k = 8}, .sequences = 16, .limits = {}};
};

}  // namespace

std::unique_ptr<Command> MakeSimulateServerCommand() {
  return std::make_unique<SimulateServerCommand>();
}

}  // namespace troupe
