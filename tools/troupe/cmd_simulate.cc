// `troupe simulate`: a cluster that serves prompts, as a scenario file describes it.
#include <fmt/core.h>

#include <optional>
#include <string>
#include <vector>

#include "sim/scenario.h"
#include "troupe/commands.h"
#include "troupe/json_record.h"
#include "troupe/options.h"
#include "troupe/progress.h"

namespace troupe {
namespace {

constexpr std::size_t kMostServersShown = 16;

class SimulateCommand final : public Command {
 public:
  void AddOptions(Options& options) override;
  Status Run() override;

 private:
  std::string in_, json_, method_;
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
  options.Add("--method", method_, "Placement method, in place of the scenario's")
      .OneOf(std::vector<std::string>(PlacerNames().begin(), PlacerNames().end()))
      .Type("NAME");
  options.Add("--seed", seed_, "Seed, in place of the scenario's").Type("N");
  options
      .Add("--set", options_.set,
           "Change a value: a JSON pointer and JSON, as /links/bytes_per_s=12.5e6; may be repeated")
      .Type("POINTER=VALUE");
  options.AddFlag("--timing", timing_,
                  "Add the simulation's run time to the record; it differs from run to run");
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
  fmt::print("{}, placed by {}\n", scenario.name, scenario.method);
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

Status SimulateCommand::Run() {
  if (!method_.empty()) options_.method = method_;
  options_.seed = seed_;
  TROUPE_ASSIGN_OR_RETURN(Scenario scenario, LoadScenario(in_, options_));
  const Stopwatch placing;
  TROUPE_RETURN_IF_ERROR(PlaceExperts(scenario));
  const double placed_in = placing.Seconds();
  const Stopwatch simulating;
  TROUPE_ASSIGN_OR_RETURN(const SimulationResult result, Simulate(scenario.setup));
  const double took = simulating.Seconds();
  if (json_ != "-") Print(scenario, result, took);
  if (json_.empty()) return OkStatus();
  Json record = ToJson(scenario, result);
  if (timing_) {
    record["placing_wall_s"] = placed_in;
    record["simulation_wall_s"] = took;
  }
  return WriteJson(record, json_);
}

}  // namespace

std::unique_ptr<Command> MakeSimulateCommand() { return std::make_unique<SimulateCommand>(); }

}  // namespace troupe
