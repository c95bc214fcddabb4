// The record of a simulation, for --json and the report.
#include "sim/scenario.h"

namespace troupe {
namespace {

Json ToJson(const TimeHistogram& times) {
  return {{"mean_s", times.mean()},
          {"p50_s", times.Quantile(0.5)},
          {"p95_s", times.Quantile(0.95)},
          {"max_s", times.greatest()}};
}

Json ToJson(const DiskResult& disk, double seconds) {
  return {{"passes", disk.passes},
          {"prompt_passes", disk.parts},
          {"loads", disk.loads},
          {"loads_ahead", disk.ahead},
          {"slot_hits", disk.slot_hits},
          {"late_calls", disk.late_calls},
          {"calls_called_off", disk.called_off},
          {"layers_rested", disk.rested},
          {"busy_share", seconds > 0 ? disk.busy_seconds / seconds : 0}};
}

Json ServersToJson(const Scenario& scenario, const SimulationResult& result) {
  Json servers = Json::Array();
  for (std::size_t n = 0; n < result.servers.size(); ++n) {
    const ServerResult& server = result.servers[n];
    const auto devices = static_cast<double>(scenario.setup.problem.servers[n].devices.size());
    const double capacity = devices * result.seconds;
    Json one = {{"name", scenario.setup.problem.servers[n].name},
                {"prompts", server.latency.count()},
                {"latency", ToJson(server.latency)},
                {"wait", ToJson(server.wait)},
                {"local_calls", server.local},
                {"remote_calls", server.remote},
                {"loaded_calls", server.loaded},
                {"busy_share", capacity > 0 ? server.busy_seconds / capacity : 0},
                {"bytes_sent", server.bytes_sent}};
    if (server.disk) one["disk"] = ToJson(*server.disk, result.seconds);
    servers.push_back(std::move(one));
  }
  return servers;
}

Json TimelineToJson(const SimulationResult& result) {
  Json timeline = Json::Array();
  for (const TimelineSample& sample : result.timeline) {
    const auto all = static_cast<double>(sample.local + sample.remote);
    Json one = {{"from_s", sample.seconds}, {"answered", sample.answered}};
    if (all > 0) one["local_ratio"] = static_cast<double>(sample.local) / all;
    if (sample.answered > 0) {
      one["latency_mean_s"] = sample.latency_sum / static_cast<double>(sample.answered);
    }
    timeline.push_back(std::move(one));
  }
  return timeline;
}

Json MigrationsToJson(const SimulationResult& result) {
  Json migrations = Json::Array();
  for (const MigrationRecord& record : result.migrations) {
    migrations.push_back({{"at_s", record.seconds},
                          {"adopted", record.decision.adopt},
                          {"cost_now_s", record.decision.seconds_now},
                          {"cost_after_s", record.decision.seconds_after},
                          {"migration_s", record.decision.migration_seconds},
                          {"loads", record.loads},
                          {"staged", record.staged},
                          {"undone", record.undone},
                          {"finished_s", record.finished_seconds},
                          {"fetching_s", record.fetching_seconds},
                          {"loading_s", record.loading_seconds}});
  }
  return migrations;
}

}  // namespace

Json ToJson(const Scenario& scenario, const SimulationResult& result) {
  return {{"scenario", scenario.name},
          {"method", scenario.method},
          {"seed", scenario.setup.seed},
          {"prompts", result.latency.count()},
          {"latency", ToJson(result.latency)},
          {"local_ratio", result.LocalRatio()},
          {"simulated_s", result.seconds},
          {"losses", result.losses},
          {"begun_again", result.begun_again},
          {"unanswered_calls", result.unanswered_calls},
          {"events", result.events},
          {"most_in_flight", result.most_in_flight},
          {"most_links", result.most_links},
          {"seconds_per_remote_call", result.seconds_per_remote_call},
          {"servers", ServersToJson(scenario, result)},
          {"migrations", MigrationsToJson(result)},
          {"timeline", TimelineToJson(result)}};
}

}  // namespace troupe
