// `troupe place`: which server and device each expert should live on, by one method or by all.
#include <fmt/core.h>

#include <algorithm>
#include <optional>
#include <string>

#include "base/json_value.h"
#include "io/read_whole.h"
#include "io/text_file.h"
#include "placement/latency_objective.h"
#include "placement/migration.h"
#include "placement/migration_order.h"
#include "placement/optimum.h"
#include "placement/placer.h"
#include "placement/remote_calls.h"
#include "sim/problem_json.h"
#include "sim/scenario.h"
#include "troupe/commands.h"
#include "troupe/json_record.h"
#include "troupe/options.h"
#include "troupe/output_path.h"
#include "troupe/placement_plots.h"
#include "troupe/plot_file.h"
#include "troupe/progress.h"

namespace troupe {
namespace {

// From the placement that --from names.
struct Move {
  MigrationDecision decision;
  MigrationPlan plan;
  std::size_t loads = 0, drops = 0;
};

class PlaceCommand final : public Command {
 public:
  void AddOptions(Options& options) override;
  Status CheckUsage() const override;
  Status Run() override;

 private:
  Status ReadInput();
  Result<PlacedExperts> Place(std::string_view method) const;
  void PrintBest(const std::vector<PlacedExperts>& outcomes) const;
  void Print(const std::vector<PlacedExperts>& outcomes) const;
  Status WriteRecord(const std::vector<PlacedExperts>& outcomes,
                     const std::optional<Move>& move) const;
  Status WritePlacement(const PlacedExperts& outcome) const;
  Move PlanMove(const PlacedExperts& outcome) const;
  void Print(const Move& move) const;

  std::string in_, method_ = "dancemoe", out_, from_, costs_, data_, plot_, json_;
  std::optional<std::uint64_t> seed_;
  std::optional<double> seconds_per_call_;

  PlacementProblem problem_;
  PlacerOptions options_;
  bool has_costs_ = false;
  std::optional<Placement> now_;  // that --from names
  std::optional<RemoteCallOptimum> optimum_;
};

void PlaceCommand::AddOptions(Options& options) {
  options.Add("PROBLEM", in_, "A placement problem or a scenario (JSON)").Required().Type("FILE");
  std::vector<std::string> methods(PlacerNames().begin(), PlacerNames().end());
  methods.emplace_back("all");
  options
      .Add("--method", method_,
           fmt::format("Placement method, or all to compare them ({})", method_))
      .OneOf(std::move(methods))
      .Type("NAME");
  options.Add("-o,--output", out_, "Write the placement to this file (JSON; - for stdout)")
      .Check(CheckOutput)
      .Type("FILE");
  options
      .Add("--from", from_,
           "The current placement: show the cost of moving to the new one and, with "
           "--seconds-per-call, whether it pays")
      .Type("FILE");
  options
      .Add("--seconds-per-call", seconds_per_call_,
           "Extra time of a remote call over a local one, to tell whether moving pays")
      .Between(0.0, 1e9)
      .Needs("--from")
      .Type("S");
  options.Add("--costs", costs_, "Costs for the latency estimate (JSON); a scenario has its own")
      .Type("FILE");
  options.Add("--data", data_, "Folder of the traces that a scenario names").Type("DIR");
  options.Add("--seed", seed_, "Seed of methods that draw at random (the scenario's, otherwise 1)")
      .Type("N");
  AddOutputOption(options, "--plot", plot_,
                  "Plot which calls stay local, and what each server holds, as .svg or .html");
  AddJsonOption(options, json_);
}

Status PlaceCommand::CheckUsage() const {
  TROUPE_RETURN_IF_ERROR(CheckPlotName(plot_));
  if (method_ == "all" && (!out_.empty() || !from_.empty())) {
    return InvalidArgument("--output and --from want one --method");
  }
  return OkStatus();
}

Status PlaceCommand::ReadInput() {
  TROUPE_ASSIGN_OR_RETURN(const std::string text, ReadWhole(in_));
  TROUPE_ASSIGN_OR_RETURN(const Json json, ParseJson(in_, text));
  const Json* format = json.Find("format");
  if (format != nullptr && *format == "troupe scenario") {
    TROUPE_ASSIGN_OR_RETURN(Scenario scenario, LoadScenario(in_, {.data_folder = data_}));
    problem_ = std::move(scenario.setup.problem);
    options_ = std::move(scenario.options);
    has_costs_ = true;
  } else {
    TROUPE_ASSIGN_OR_RETURN(problem_, ParseProblem(in_, text));
  }
  if (!costs_.empty()) {
    TROUPE_ASSIGN_OR_RETURN(options_.latency.costs, ReadCostsFile(costs_));
    has_costs_ = true;
  }
  if (seed_) options_.seed = *seed_;
  if (from_.empty()) return OkStatus();
  TROUPE_ASSIGN_OR_RETURN(const std::string from, ReadWhole(from_));
  TROUPE_ASSIGN_OR_RETURN(now_, ParsePlacement(from_, from, problem_));
  return OkStatus();
}

Result<PlacedExperts> PlaceCommand::Place(std::string_view method) const {
  TROUPE_ASSIGN_OR_RETURN(const auto placer, MakePlacer(method, options_));
  const Stopwatch watch;
  Result<Placement> placement = placer->Place(problem_);
  if (!placement.ok()) return Status(placement.status()).WithContext(method);
  PlacedExperts outcome{.method = std::string(method), .seconds = watch.Seconds()};
  if (now_) placement = KeepDevices(problem_, *now_, *std::move(placement));
  TROUPE_RETURN_IF_ERROR(Validate(*placement, problem_));
  const HolderTable holders(problem_, *placement);
  outcome.placement = *std::move(placement);
  outcome.calls = CountRemoteCalls(problem_, holders);
  if (has_costs_) {
    outcome.pass_seconds = LatencyObjective(problem_, options_.latency).Evaluate(holders).seconds;
  }
  return outcome;
}

// The method with the fewest remote calls and, where that is estimated, the fastest.
void PlaceCommand::PrintBest(const std::vector<PlacedExperts>& outcomes) const {
  const PlacedExperts& fewest = *std::ranges::min_element(
      outcomes, {}, [](const PlacedExperts& outcome) { return outcome.calls.remote; });
  const PlacedExperts& fastest =
      *std::ranges::min_element(outcomes, {}, [](const PlacedExperts& outcome) {
        return outcome.pass_seconds ? *outcome.pass_seconds : 0.0;
      });
  if (outcomes.size() == 1) {
    fmt::print("{:.2f} % of expert calls stay on their server as {} places them",
               100 * fewest.calls.LocalRatio(), fewest.method);
    if (fewest.pass_seconds) fmt::print("; a pass takes {:.2f} ms", 1e3 * *fewest.pass_seconds);
    fmt::print("\n");
    return;
  }
  fmt::print("fewest calls of other servers: {} ({:.2f} % stay local)", fewest.method,
             100 * fewest.calls.LocalRatio());
  if (fastest.pass_seconds) {
    fmt::print("; fastest pass: {} ({:.2f} ms)", fastest.method, 1e3 * *fastest.pass_seconds);
  }
  fmt::print("\n");
}

void PlaceCommand::Print(const std::vector<PlacedExperts>& outcomes) const {
  fmt::print("{:<11} {:>14} {:>8} {:>16} {:>10} {:>10}\n", "method", "remote calls", "local",
             optimum_->exact ? "over the optimum" : "over the bound", "latency", "placed in");
  for (const PlacedExperts& outcome : outcomes) {
    const double least = optimum_->lower_bound;
    const std::string gap = least > 0
                                ? fmt::format("{:+.2f} %", 100 * (outcome.calls.remote / least - 1))
                                : fmt::format("{:+g}", outcome.calls.remote);
    const std::string latency =
        outcome.pass_seconds ? fmt::format("{:.2f} ms", 1e3 * *outcome.pass_seconds) : "-";
    fmt::print("{:<11} {:>14.4f} {:>6.2f} % {:>16} {:>10} {:>7.1f} ms\n", outcome.method,
               outcome.calls.remote, 100 * outcome.calls.LocalRatio(), gap, latency,
               1e3 * outcome.seconds);
  }
  fmt::print("remote calls cannot be below {:.4f} ({}).\n", optimum_->lower_bound,
             optimum_->exact ? "the optimum, by minimum-cost flow" : "a Lagrangian bound");
  if (has_costs_) fmt::print("Latency: the estimate of a pass through all expert layers.\n");
}

Status PlaceCommand::WriteRecord(const std::vector<PlacedExperts>& outcomes,
                                 const std::optional<Move>& move) const {
  Json methods = Json::Array();
  for (const PlacedExperts& outcome : outcomes) {
    Json one = {{"method", outcome.method},
                {"remote_calls", outcome.calls.remote},
                {"above_bound", outcome.calls.remote - optimum_->lower_bound},
                {"remote_calls_by_server", outcome.calls.by_server},
                {"local_ratio", outcome.calls.LocalRatio()},
                {"copies", outcome.placement.copies()},
                {"seconds", outcome.seconds}};
    if (outcome.pass_seconds) one["latency_s"] = *outcome.pass_seconds;
    methods.push_back(std::move(one));
  }
  Json record = {{"problem", in_},
                 {"remote_calls_bound", optimum_->lower_bound},
                 {"bound_is_optimum", optimum_->exact},
                 {"methods", std::move(methods)}};
  if (move) {
    record["migration"] = {{"migration_s", move->decision.migration_seconds},
                           {"loads", move->loads},
                           {"drops", move->drops},
                           {"staged", move->plan.staged},
                           {"undone", move->plan.undone}};
    if (seconds_per_call_) {
      record["migration"]["adopt"] = move->decision.adopt;
      record["migration"]["cost_now_s"] = move->decision.seconds_now;
      record["migration"]["cost_after_s"] = move->decision.seconds_after;
    }
  }
  return WriteJson(record, json_);
}

Status PlaceCommand::WritePlacement(const PlacedExperts& outcome) const {
  return WriteJson(ToJson(problem_, outcome.placement), out_);
}

Move PlaceCommand::PlanMove(const PlacedExperts& outcome) const {
  Move move{
      .decision =
          DecideMigration(problem_, *now_, outcome.placement, seconds_per_call_.value_or(0)),
      .plan = OrderMigration(problem_, *now_, outcome.placement),
  };
  for (const MigrationStep& step : move.plan.steps) {
    ++(step.kind == MigrationStep::Kind::kLoad ? move.loads : move.drops);
  }
  return move;
}

void PlaceCommand::Print(const Move& move) const {
  if (!seconds_per_call_) {
    fmt::print("moving takes {:.2f} s; --seconds-per-call tells whether that pays\n",
               move.decision.migration_seconds);
  } else {
    fmt::print("{}: remote calls cost {:.2f} s now and {:.2f} s after, moving takes {:.2f} s\n",
               move.decision.adopt ? "move" : "stay", move.decision.seconds_now,
               move.decision.seconds_after, move.decision.migration_seconds);
  }
  fmt::print(
      "from {}: {} loads and {} drops, {} of the loads only until another is done, {} cannot be "
      "done\n",
      from_, move.loads, move.drops, move.plan.staged, move.plan.undone);
}

Status PlaceCommand::Run() {
  TROUPE_RETURN_IF_ERROR(ReadInput());
  if (method_ == "latency" && !has_costs_) {
    return Error(Code::kFailedPrecondition, "{}: method 'latency' wants --costs FILE or a scenario",
                 in_);
  }
  TROUPE_ASSIGN_OR_RETURN(optimum_, MinimizeRemoteCalls(problem_));
  std::vector<PlacedExperts> outcomes;
  for (const std::string_view name : PlacerNames()) {
    const bool wanted = method_ == "all" ? has_costs_ || name != "latency" : method_ == name;
    if (!wanted) continue;
    TROUPE_ASSIGN_OR_RETURN(PlacedExperts outcome, Place(name));
    outcomes.push_back(std::move(outcome));
  }
  std::optional<Move> move;
  if (now_) move = PlanMove(outcomes.front());
  if (!out_.empty()) TROUPE_RETURN_IF_ERROR(WritePlacement(outcomes.front()));
  if (!plot_.empty()) {
    TROUPE_RETURN_IF_ERROR(WriteWholeText(plot_, PlotPlaced(problem_, outcomes, plot_)));
  }
  if (json_ != "-" && out_ != "-") {
    if (move) Print(*move);
    PrintBest(outcomes);
    Print(outcomes);
  }
  TellPlot(plot_);
  return json_.empty() ? OkStatus() : WriteRecord(outcomes, move);
}

}  // namespace

std::unique_ptr<Command> MakePlaceCommand() { return std::make_unique<PlaceCommand>(); }

}  // namespace troupe
