// `troupe simulate-ends`: what users of weak machines would see that share a cloud, by the objects
// that place live answers, on a virtual clock. What engines and the link take is said by flags.
#include <fmt/core.h>

#include <string>

#include "sim/trace_file.h"
#include "split/play/end_cloud_play.h"
#include "troupe/commands.h"
#include "troupe/json_record.h"
#include "troupe/options.h"

namespace troupe {
namespace {

constexpr double kLongestPlayedMs = 1e4;
constexpr double kMostPlayedRequests = 1e7;

class SimulateEndsCommand final : public Command {
 public:
  void AddOptions(Options& options) override {
    options.Heading("Machines");
    options.Add("--ends", setup_.ends, "Ends that share the cloud (1)")
        .Between(1u, 1000u)
        .Type("N");
    AddEngine(options, "end", end_, 4);
    AddEngine(options, "cloud", cloud_, 8);
    options.Add("--round-trip-ms", round_trip_ms_, "From an end to the cloud and back (10)")
        .Between(0.0, kLongestPlayedMs)
        .Type("MS");
    options.Add("--most-in-cloud", setup_.most_in_cloud, "Answers of an end there at a time (32)")
        .Between(std::size_t{1}, std::size_t{100'000})
        .Type("N");
    options.AddFlag("--one-key", setup_.one_key,
                    "All ends share a key, so that the cloud takes them for one");
    options.Heading("Load");
    options
        .Add("--rate", load_.per_second,
             "Requests a second of all ends together, at random times (--together instead)")
        .Between(1e-6, 1e6)
        .Excludes("--requests")
        .Excludes("--together")
        .Type("X");
    options
        .Add("--requests", recorded_,
             "Recorded requests instead, with their times and lengths, as of `troupe "
             "simulate-server`")
        .Excludes("--together")
        .Excludes("--prompt")
        .Excludes("--answer")
        .Excludes("--seconds")
        .Type("FILE");
    options
        .Add("--together", load_.together, "Requests that each end has under way at all times (1)")
        .Between(1u, 10'000u)
        .Type("N");
    options.Add("--prompts", load_.prompts, "Prompts of a request, which is over with the last (1)")
        .Between(1u, 10'000u)
        .Type("N");
    options.Add("--prompt", load_.prompt_tokens, "Tokens of a prompt (256)")
        .Between(1u, 1'000'000u)
        .Type("N");
    options.Add("--answer", load_.answer_tokens, "Tokens of an answer (1)")
        .Between(1u, 1'000'000u)
        .Type("N");
    options.Add("--seconds", load_.seconds, "How long requests come (20)")
        .Between(0.1, 1e6)
        .Type("S");
    options.Add("--seed", load_.seed, "Of the random times (1)").Type("N");
    options.Heading("Places");
    options
        .Add("--place", place_, "Where answers are chosen: auto, cloud, end or route-aware (auto)")
        .OneOf({"auto", "cloud", "end", "route-aware"})
        .Type("RULE");
    options.Heading(kOutputHeading);
    AddJsonOption(options, json_);
  }

  Status CheckUsage() const override {
    if (load_.per_second * load_.seconds <= kMostPlayedRequests) return OkStatus();
    return InvalidArgument("--rate {} for {} s: at most {:.0e} requests are played",
                           load_.per_second, load_.seconds, kMostPlayedRequests);
  }

  Status Run() override {
    setup_.end = end_.Setup();
    setup_.cloud = cloud_.Setup();
    setup_.round_trip_seconds = round_trip_ms_ * 1e-3;
    if (!recorded_.empty()) {
      TROUPE_ASSIGN_OR_RETURN(load_.recorded, ReadRequests(recorded_));
    }
    TROUPE_ASSIGN_OR_RETURN(const std::unique_ptr<PlaceRule> rule, MakePlaceRule(place_));
    const EndCloudResult result = PlayEndsAndCloud(setup_, load_, *rule);
    if (json_ != "-") Print(result);
    return json_.empty() ? OkStatus() : WriteJson(Record(result), json_);
  }

 private:
  struct Engine {
    double pass_ms = 0, row_ms = 1;
    std::uint32_t sequences = 1;
    std::uint32_t rows = BatchLimits().most_rows;

    EngineSetup Setup() const {
      return {.costs = {.pass_seconds = pass_ms * 1e-3, .row_seconds = row_ms * 1e-3},
              .sequences = sequences,
              .limits = {.most_rows = rows}};
    }
  };

  static void AddEngine(Options& options, const std::string& who, Engine& engine,
                        std::uint32_t sequences) {
    engine.sequences = sequences;
    options
        .Add(fmt::format("--{}-pass-cost-ms", who), engine.pass_ms,
             fmt::format("What a pass of the {} takes by itself (0)", who))
        .Between(0.0, kLongestPlayedMs)
        .Type("MS");
    options
        .Add(fmt::format("--{}-row-cost-ms", who), engine.row_ms,
             "And for each token that is read or chosen (1)")
        .Between(1e-3, kLongestPlayedMs)
        .Type("MS");
    options
        .Add(fmt::format("--{}-parallel", who), engine.sequences,
             fmt::format("Answers at a time ({})", sequences))
        .Between(1u, 10'000u)
        .Type("N");
    options.Add(fmt::format("--{}-rows", who), engine.rows, "Most tokens of a pass (512)")
        .Between(1u, 100'000u)
        .Type("N");
  }

  static void Print(const EndCloudResult& result) {
    fmt::print("a request takes {:.3f} s (mean; p95 {:.3f} s), and {:.2f} a second are answered\n",
               result.latency.mean(), result.latency.Quantile(0.95), result.per_second);
    const auto& [begun, flow] = result.answers;
    fmt::print(
        "{} requests; answers begun: {} at ends, {} in the cloud; {} moved while they waited\n",
        result.requests, begun[0], begun[1], flow.moved[0] + flow.moved[1]);
    fmt::print(
        "tokens: {} chosen at ends, {} in the cloud; at work: ends {:.0f} % of the time, the "
        "cloud {:.0f} %\n",
        flow.tokens[0], flow.tokens[1], 100 * result.end_busy, 100 * result.cloud_busy);
  }

  static Json Record(const EndCloudResult& result) {
    const auto& [begun, flow] = result.answers;
    return Json{{"requests", result.requests},
                {"requests_per_s", result.per_second},
                {"latency_s",
                 {{"mean", result.latency.mean()},
                  {"p50", result.latency.Quantile(0.5)},
                  {"p95", result.latency.Quantile(0.95)},
                  {"max", result.latency.greatest()}}},
                {"begun", {{"end", begun[0]}, {"cloud", begun[1]}}},
                {"moved", flow.moved[0] + flow.moved[1]},
                {"tokens", {{"end", flow.tokens[0]}, {"cloud", flow.tokens[1]}}},
                {"busy", {{"end", result.end_busy}, {"cloud", result.cloud_busy}}}};
  }

  Engine end_, cloud_;
  EndCloudSetup setup_;
  EndCloudLoad load_{.prompt_tokens = 256};
  double round_trip_ms_ = 10;
  std::string place_ = "auto", recorded_, json_;
};

}  // namespace

std::unique_ptr<Command> MakeSimulateEndsCommand() {
  return std::make_unique<SimulateEndsCommand>();
}

}  // namespace troupe
