// `troupe simulate`: a cluster that serves prompts, as a scenario file describes it.
#include <fmt/core.h>

#include <algorithm>
#include <optional>
#include <string>
#include <vector>

#include "io/text_file.h"
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

constexpr std::size_t kMostServersShown = 16;

class SimulateCommand final : public Command {
 public:
  void AddOptions(Options& options) override;
  Status CheckUsage() const override { return CheckPlotName(plot_); }
  Status Run() override;

 private:
  // One scenario whose experts are placed in one way.
  struct Outcome {
    Scenario scenario;
    SimulationResult result;
    double placed_in = 0, took = 0;
  };

  Result<Outcome> SimulateBy(std::optional<std::string> method) const;
  static void Show(ProgressBar& bar, const Workload& workload, double seconds,
                   std::uint64_t answered);
  Json RecordOf(const Outcome& outcome) const;
  Status Write(std::vector<Outcome> outcomes) const;

  std::string in_, json_, method_, plot_;
  ScenarioOptions options_;
  std::optional<std::uint64_t> seed_;
  bool timing_ = false;
};

void SimulateCommand::AddOptions(Options& options) {
  options.Add("SCENARIO", in_, "The scenario (JSON)").Required().Type("FILE");
  options
      .Add("--data", options_.data_folder,
           "Folder of the traces that the scenario names (the scenario's folder)")
      .Type("DIR");
  std::vector<std::string> methods(PlacerNames().begin(), PlacerNames().end());
  methods.emplace_back("all");
  options
      .Add("--method", method_,
           "Placement method, in place of the scenario's, or all to compare them")
      .OneOf(std::move(methods))
      .Type("NAME");
  options.Add("--seed", seed_, "Seed, in place of the scenario's").Type("N");
  options
      .Add("--set", options_.set,
           "Change a value: a JSON pointer and JSON, as /links/bytes_per_s=12.5e6; may be repeated")
      .Type("POINTER=VALUE");
  options.AddFlag("--timing", timing_,
                  "Add the simulation's run time to the record; it differs from run to run");
  AddOutputOption(options, "--plot", plot_,
                  "Plot how long prompts take over time and by server, as .svg or .html");
  AddJsonOption(options, json_);
}

void PrintServers(const Scenario& scenario, const SimulationResult& result) {
  fmt::print("{:<16} {:>8} {:>10} {:>10} {:>10} {:>8} {:>8}\n", "server", "prompts", "mean", "p95",
             "waiting", "local", "busy");
  for (std::size_t n = 0; n < result.servers.size() && n < kMostServersShown; ++n) {
    const ServerResult& server = result.servers[n];
    const PlacementServer& machine = scenario.setup.problem.servers[n];
    const auto all = static_cast<double>(server.local + server.remote);
    const double capacity = static_cast<double>(machine.devices.size()) * result.seconds;
    fmt::print("{:<16} {:>8} {:>8.3f} s {:>8.3f} s {:>8.3f} s {:>6.1f} % {:>6.1f} %\n",
               machine.name, server.latency.count(), server.latency.mean(),
               server.latency.Quantile(0.95), server.wait.mean(),
               all > 0 ? 100 * static_cast<double>(server.local) / all : 100.0,
               capacity > 0 ? 100 * server.busy_seconds / capacity : 0.0);
  }
  if (result.servers.size() > kMostServersShown) {
    fmt::print("and {} servers more\n", result.servers.size() - kMostServersShown);
  }
}

void Print(const Scenario& scenario, const SimulationResult& result, double took) {
  fmt::print(
      "a prompt takes {:.3f} s (mean; p95 {:.3f} s), and {:.1f} % of expert calls stay local: "
      "{}, placed by {}\n",
      result.latency.mean(), result.latency.Quantile(0.95), 100 * result.LocalRatio(),
      scenario.name, scenario.method);
  PrintServers(scenario, result);
  for (const MigrationRecord& record : result.migrations) {
    if (!record.decision.adopt) continue;
    fmt::print(
        "at {:.0f} s: {} experts loaded in {:.1f} s (remote calls {:.1f} s, after {:.1f} s)\n",
        record.seconds, record.loads, record.finished_seconds - record.seconds,
        record.decision.seconds_now, record.decision.seconds_after);
  }
  fmt::print("all: {} prompts in {:.0f} s, mean {:.3f} s, p95 {:.3f} s, {:.1f} % local\n",
             result.latency.count(), result.seconds, result.latency.mean(),
             result.latency.Quantile(0.95), 100 * result.LocalRatio());
  fmt::print("{} events in {:.2f} s, {:.2f} million a second\n", result.events, took,
             1e-6 * static_cast<double>(result.events) / took);
}

void Print(const std::vector<SimulatedMethod>& runs) {
  const SimulatedMethod& best = *std::ranges::min_element(
      runs, {}, [](const SimulatedMethod& run) { return run.result.latency.mean(); });
  fmt::print("prompts are fastest as {} places experts: {:.3f} s (mean)\n", best.method,
             best.result.latency.mean());
  fmt::print("{:<12} {:>10} {:>10} {:>8} {:>10}\n", "method", "mean", "p95", "local", "over best");
  for (const SimulatedMethod& run : runs) {
    fmt::print("{:<12} {:>8.3f} s {:>8.3f} s {:>6.1f} % {:>+8.1f} %\n", run.method,
               run.result.latency.mean(), run.result.latency.Quantile(0.95),
               100 * run.result.LocalRatio(),
               100 * (run.result.latency.mean() / best.result.latency.mean() - 1));
  }
}

// Users come for a given time, or ask a number of prompts, whichever ends first.
void SimulateCommand::Show(ProgressBar& bar, const Workload& workload, double seconds,
                           std::uint64_t answered) {
  const auto prompts = static_cast<double>(workload.prompts);
  const bool ends_by_time =
      workload.until_seconds > 0 &&
      seconds * prompts > static_cast<double>(answered) * workload.until_seconds;
  if (ends_by_time) return bar.UpdateTime(seconds, workload.until_seconds);
  bar.UpdateCount(static_cast<double>(answered), workload.prompts);
}

Result<SimulateCommand::Outcome> SimulateCommand::SimulateBy(
    std::optional<std::string> method) const {
  ScenarioOptions options = options_;
  options.method = std::move(method);
  options.seed = seed_;
  Outcome outcome;
  TROUPE_ASSIGN_OR_RETURN(outcome.scenario, LoadScenario(in_, options));
  const Stopwatch placing;
  TROUPE_RETURN_IF_ERROR(PlaceExperts(outcome.scenario));
  outcome.placed_in = placing.Seconds();
  const Stopwatch simulating;
  ProgressBar bar(fmt::format("simulating {}", outcome.scenario.method));
  const Workload& workload = outcome.scenario.setup.workload;
  TROUPE_ASSIGN_OR_RETURN(
      outcome.result, Simulate(outcome.scenario.setup, [&](double seconds, std::uint64_t answered) {
        Show(bar, workload, seconds, answered);
      }));
  outcome.took = simulating.Seconds();
  return outcome;
}

Json SimulateCommand::RecordOf(const Outcome& outcome) const {
  Json record = ToJson(outcome.scenario, outcome.result);
  if (timing_) {
    record["placing_wall_s"] = outcome.placed_in;
    record["simulation_wall_s"] = outcome.took;
  }
  return record;
}

Status SimulateCommand::Write(std::vector<Outcome> outcomes) const {
  const bool all = method_ == "all";
  if (!json_.empty()) {
    std::vector<Json> records;
    for (const Outcome& outcome : outcomes) records.push_back(RecordOf(outcome));
    TROUPE_RETURN_IF_ERROR(
        WriteJson(all ? Json({{"methods", records}}) : std::move(records.front()), json_));
  }
  const Outcome& first = outcomes.front();
  if (json_ != "-" && !all) Print(first.scenario, first.result, first.took);
  const std::string title = first.scenario.name;
  const PlacementProblem problem = first.scenario.setup.problem;
  std::vector<SimulatedMethod> runs;
  for (Outcome& outcome : outcomes) {
    runs.push_back({.method = outcome.scenario.method, .result = std::move(outcome.result)});
  }
  if (json_ != "-" && all) Print(runs);
  if (plot_.empty()) return OkStatus();
  TROUPE_RETURN_IF_ERROR(WriteWholeText(plot_, PlotSimulated(problem, runs, title, plot_)));
  TellPlot(plot_);
  return OkStatus();
}

Status SimulateCommand::Run() {
  std::vector<Outcome> outcomes;
  if (method_ != "all") {
    TROUPE_ASSIGN_OR_RETURN(
        Outcome outcome,
        SimulateBy(method_.empty() ? std::nullopt : std::optional<std::string>(method_)));
    outcomes.push_back(std::move(outcome));
    return Write(std::move(outcomes));
  }
  for (const std::string_view name : PlacerNames()) {
    TROUPE_ASSIGN_OR_RETURN(Outcome outcome, SimulateBy(std::string(name)));
    outcomes.push_back(std::move(outcome));
  }
  return Write(std::move(outcomes));
}

}  // namespace

std::unique_ptr<Command> MakeSimulateCommand() { return std::make_unique<SimulateCommand>(); }

}  // namespace troupe
