#include "sim/scenario.h"

#include <algorithm>
#include <filesystem>
#include <map>
#include <numeric>

#include "base/json_pointer.h"
#include "base/json_value.h"
#include "io/read_whole.h"
#include "sim/linear_fit.h"
#include "sim/own_disk_json.h"
#include "sim/problem_json.h"
#include "sim/trace_file.h"

namespace troupe {
namespace {

constexpr std::string_view kFormat = "troupe scenario";
// Between two prompts: eleven days. What runs by the clock meanwhile is simulated, too.
constexpr double kLongestInterval = 1e6;
constexpr std::uint64_t kMostDrawn = 1u << 28;  // choices of a drawn trace, of two bytes

// Ends the reader with the error that reading another file gave.
template <typename T>
T Get(Result<T> result) {
  if (!result.ok()) JsonValue::Refuse(result.status().message());
  return *std::move(result);
}

LinearCost ReadCost(const JsonValue& json) {
  if (!json.Has("samples")) {
    json.AllowOnly({"base_s", "each_s", "note"});
    return {.base = json.At("base_s").Number(), .each = json.At("each_s").Number()};
  }
  json.AllowOnly({"samples", "note"});
  const JsonValue samples = json.At("samples");
  std::vector<CostSample> read;
  for (std::size_t i = 0; i < samples.size(); ++i) {
    const JsonValue sample = samples.At(i);
    read.push_back(
        {.amount = sample.At(std::size_t{0}).Number(), .seconds = sample.At(1).Number()});
  }
  const Result<LinearFit> fit = FitLinearCost(read);
  if (!fit.ok()) samples.Fail(fit.status().message());
  return fit->cost;
}

ServingCosts ReadCosts(const JsonValue& json) {
  json.AllowOnly({"note", "expert", "dense", "call", "bytes_per_token", "bytes_per_answer"});
  const ServingCosts costs{.expert = ReadCost(json.At("expert")),
                           .dense = ReadCost(json.At("dense")),
                           .call = ReadCost(json.At("call")),
                           .bytes_per_token = json.At("bytes_per_token").Number(),
                           .bytes_per_answer = json.NumberOr("bytes_per_answer", 0)};
  for (const LinearCost& cost : {costs.expert, costs.dense, costs.call}) {
    if (cost.base < 0 || cost.each < 0) json.Fail("costs of zero or more");
  }
  if (costs.bytes_per_answer < 0) json.At("bytes_per_answer").Fail("zero or more");
  if (costs.bytes_per_token < 0) json.At("bytes_per_token").Fail("zero or more");
  return costs;
}

std::uint32_t MostTokens(const JsonValue& json, const char* key) {
  constexpr std::uint32_t kMost = 1u << 20;
  return json.Has(key) ? static_cast<std::uint32_t>(json.At(key).Count(1, kMost)) : kMost;
}

Serving ReadServing(const JsonValue& json) {
  if (json.String() == "together") return Serving::kTogether;
  if (json.String() == "alone") return Serving::kAlone;
  if (json.String() == "redirected") return Serving::kAloneRedirected;
  json.Fail("\"together\", \"alone\" or \"redirected\"");
}

MigrationLoads ReadLoads(const JsonValue& json) {
  if (json.String() == "beside") return MigrationLoads::kBeside;
  if (json.String() == "devices") return MigrationLoads::kDevices;
  if (json.String() == "links") return MigrationLoads::kLinks;
  json.Fail("\"beside\", \"devices\" or \"links\"");
}

class ScenarioReader {
 public:
  ScenarioReader(const std::string& path, const ScenarioOptions& options)
      : options_(options), own_folder_(std::filesystem::path(path).parent_path()) {}

  Scenario Read(const JsonValue& json);

 private:
  std::string DataPath(const JsonValue& file) const {
    const std::filesystem::path folder =
        options_.data_folder.empty() ? own_folder_ : std::filesystem::path(options_.data_folder);
    return (folder / file.String()).string();
  }
  void ReadTraces(const JsonValue& json);
  RoutingTrace ReadTrace(const JsonValue& json);
  std::uint32_t TraceNamed(const JsonValue& json) const;
  void ReadUsers(const JsonValue& json);
  const std::vector<RecordedRequest>& RequestsOf(const JsonValue& file);
  ServerUsers ReadUsersOf(const JsonValue& json, std::uint32_t server);
  void ReadPlacement(const JsonValue& json);
  // Users ask every second sequence of each trace. The placement learns from the others or, which
  // is the control that differs in nothing else, from those that are asked.
  void HoldOut(const JsonValue& json);
  void ReadMigration(const JsonValue& json);
  void ReadLosses(const JsonValue& json);
  // What the placement is told about the users, and what the latency objective is.
  void DeriveStatistics();

  const ScenarioOptions& options_;
  std::filesystem::path own_folder_;
  Scenario scenario_;
  std::map<std::string, std::uint32_t> traces_;
  std::map<std::string, std::vector<RecordedRequest>> requests_;  // by path, each file read once
  std::vector<std::uint32_t> statistics_;  // traces that the placement assumes; empty: the users'
  // What the placement knows of each trace, where users ask the other half; empty: what they ask.
  std::vector<RoutingTrace> known_;
};

RoutingTrace ScenarioReader::ReadTrace(const JsonValue& json) {
  if (json.Has("file")) {
    json.AllowOnly({"file", "answers"});
    RoutingTrace trace = Get(ReadRoutingTrace(DataPath(json.At("file"))));
    if (!json.Has("answers") || !json.At("answers").Flag()) {
      trace.answer_tokens.clear();
    } else if (std::ranges::count(trace.answer_tokens, 0u) > 0 || trace.answer_tokens.empty()) {
      json.At("answers").Fail("a trace of which every sequence has an answer");
    }
    return trace;
  }
  json.AllowOnly({"counts", "model", "task", "sequences", "tokens_each", "seed"});
  const auto counts = Get(ReadExpertCounts(DataPath(json.At("counts")), json.At("model").String(),
                                           json.At("task").String()));
  Rng rng(json.Has("seed") ? json.At("seed").Count(0, ~std::uint64_t{0}) : 1);
  const std::uint64_t sequences = json.At("sequences").Count(1, 1u << 20);
  const std::uint64_t tokens_each = json.At("tokens_each").Count(1, 1u << 12);
  const std::uint32_t top_k = scenario_.setup.problem.experts_per_token;
  if (sequences * tokens_each * counts.size() * top_k > kMostDrawn) {
    json.Fail(
        fmt::format("at most {} choices: sequences x tokens x layers x {}", kMostDrawn, top_k));
  }
  if (top_k > counts.front().size()) {
    json.Fail(fmt::format("at least {} experts a layer, one for each that a token takes", top_k));
  }
  return DrawTrace(counts, top_k, static_cast<std::uint32_t>(sequences),
                   static_cast<std::uint32_t>(tokens_each), rng);
}

void ScenarioReader::ReadTraces(const JsonValue& json) {
  if (!json.IsObject()) json.Fail("an object of traces by name");
  for (const auto& [name, value] : json.raw().members()) {
    traces_[name] = static_cast<std::uint32_t>(scenario_.setup.traces.size());
    RoutingTrace trace = ReadTrace(json.At(name.c_str()));
    const ExpertTable& experts = scenario_.setup.problem.experts;
    if (trace.layers != experts.layers() || trace.experts != experts.CountIn(0)) {
      json.At(name.c_str())
          .Fail(fmt::format("a trace of {} layers x {} experts for a model with {} x {}",
                            trace.layers, trace.experts, experts.layers(), experts.CountIn(0)));
    }
    scenario_.setup.traces.push_back(std::move(trace));
  }
}

std::uint32_t ScenarioReader::TraceNamed(const JsonValue& json) const {
  const auto found = traces_.find(json.String());
  if (found == traces_.end()) json.Fail("the name of one of 'traces'");
  return found->second;
}

const std::vector<RecordedRequest>& ScenarioReader::RequestsOf(const JsonValue& file) {
  const auto found = requests_.find(DataPath(file));
  if (found != requests_.end()) return found->second;
  return requests_.emplace(DataPath(file), Get(ReadRequests(DataPath(file)))).first->second;
}

ServerUsers ScenarioReader::ReadUsersOf(const JsonValue& json, std::uint32_t server) {
  json.AllowOnly({"phases", "recorded"});
  ServerUsers users;
  const JsonValue phases = json.At("phases");
  if (!phases.IsArray() || phases.size() == 0) phases.Fail("an array of phases");
  for (std::size_t i = 0; i < phases.size(); ++i) {
    const JsonValue phase = phases.At(i);
    phase.AllowOnly({"from_s", "trace", "mean_interval_s"});
    users.phases.push_back({.from_seconds = phase.NumberOr("from_s", 0),
                            .trace = TraceNamed(phase.At("trace")),
                            .mean_interval_s = phase.NumberOr("mean_interval_s", 10)});
    const double from = users.phases.back().from_seconds;
    if (i == 0 ? from != 0 : from <= users.phases[i - 1].from_seconds) {
      phase.Fail("phases that rise in 'from_s', the first from 0");
    }
    const double interval = users.phases.back().mean_interval_s;
    if (!(interval > 0 && interval <= kLongestInterval)) {
      phase.At("mean_interval_s").Fail(fmt::format("above 0 and at most {}", kLongestInterval));
    }
  }
  if (!json.Has("recorded")) return users;
  // Requests of one file are dealt to the servers, so that each has its own.
  const JsonValue recorded = json.At("recorded");
  recorded.AllowOnly({"file", "most_input_tokens", "most_output_tokens", "times"});
  const std::vector<RecordedRequest>& all = RequestsOf(recorded.At("file"));
  const std::uint32_t most_input = MostTokens(recorded, "most_input_tokens");
  const std::uint32_t most_output = MostTokens(recorded, "most_output_tokens");
  const double times = recorded.NumberOr("times", 1);
  if (!(times > 0)) recorded.At("times").Fail("a positive number");
  const std::uint32_t servers = scenario_.setup.problem.server_count();
  if (servers > all.size()) {
    recorded.At("file").Fail(
        fmt::format("a request for each of {} servers, and it has {}", servers, all.size()));
  }
  for (std::size_t i = server; i < all.size(); i += servers) {
    RecordedRequest request = all[i];
    request.seconds *= times;
    request.input_tokens = std::min(request.input_tokens, most_input);
    request.output_tokens = std::min(request.output_tokens, most_output);
    users.recorded.push_back(request);
  }
  return users;
}

void ScenarioReader::ReadUsers(const JsonValue& json) {
  if (!json.IsArray() || json.size() == 0) json.Fail("an array of users, dealt to the servers");
  for (std::uint32_t n = 0; n < scenario_.setup.problem.server_count(); ++n) {
    scenario_.setup.workload.users.push_back(ReadUsersOf(json.At(n % json.size()), n));
  }
}

void ScenarioReader::HoldOut(const JsonValue& json) {
  const bool learns_from_served = json.IsString() && json.String() == "served";
  if (!learns_from_served && !json.raw().IsBool()) json.Fail("true, false or \"served\"");
  if (!learns_from_served && !json.Flag()) return;
  for (RoutingTrace& trace : scenario_.setup.traces) {
    if (trace.sequence_starts.size() < 2) json.Fail("false, or traces of two sequences and more");
    if (!learns_from_served) known_.push_back(HalfOf(trace, 0));
    trace = HalfOf(trace, 1);
  }
}

void ScenarioReader::ReadPlacement(const JsonValue& json) {
  json.AllowOnly({"method", "seed", "statistics", "held_out"});
  scenario_.method = json.At("method").String();
  if (json.Has("seed")) scenario_.options.seed = json.At("seed").Count(0, ~std::uint64_t{0});
  if (json.Has("held_out")) HoldOut(json.At("held_out"));
  if (!json.Has("statistics")) return;
  const JsonValue statistics = json.At("statistics");
  if (!statistics.IsArray() || statistics.size() == 0) statistics.Fail("an array of traces");
  for (std::uint32_t n = 0; n < scenario_.setup.problem.server_count(); ++n) {
    statistics_.push_back(TraceNamed(statistics.At(n % statistics.size())));
  }
}

void ScenarioReader::ReadMigration(const JsonValue& json) {
  json.AllowOnly({"interval_s", "method", "loads"});
  scenario_.setup.migration.interval_s = json.At("interval_s").Number();
  if (json.Has("loads")) scenario_.setup.migration.loads = ReadLoads(json.At("loads"));
  scenario_.setup.migration.placer =
      json.Has("method") ? json.At("method").String() : scenario_.method;
}

void ScenarioReader::ReadLosses(const JsonValue& json) {
  json.AllowOnly({"mean_up_s", "away_s", "notice_s"});
  LossSetup& losses = scenario_.setup.losses;
  losses.mean_up_seconds = json.At("mean_up_s").Number();
  losses.away_seconds = json.NumberOr("away_s", losses.away_seconds);
  losses.notice_seconds = json.NumberOr("notice_s", losses.notice_seconds);
}

void ScenarioReader::DeriveStatistics() {
  SimulationSetup& setup = scenario_.setup;
  LatencyModel& model = scenario_.options.latency;
  model.costs = setup.costs;
  model.sharing = setup.sharing;
  std::vector<std::vector<double>> per_token;
  const std::vector<RoutingTrace>& known = known_.empty() ? setup.traces : known_;
  for (const RoutingTrace& trace : known) per_token.push_back(ActivationsPerToken(trace));
  for (std::uint32_t n = 0; n < setup.problem.server_count(); ++n) {
    const ServerUsers& users = setup.workload.users[n];
    const UserPhase& phase = users.phases.front();
    const RoutingTrace& trace = known[phase.trace];
    const std::uint32_t answers =
        std::accumulate(trace.answer_tokens.begin(), trace.answer_tokens.end(), 0u);
    double input = static_cast<double>(trace.tokens - answers) /
                   static_cast<double>(trace.sequence_starts.size());
    double output = setup.workload.output_tokens, interval = phase.mean_interval_s;
    if (!users.recorded.empty()) {
      input = output = 0;
      const auto count = static_cast<double>(users.recorded.size());
      for (const RecordedRequest& request : users.recorded) {
        input += request.input_tokens / count;
        output += request.output_tokens / count;
      }
      interval = std::max(1e-3, users.recorded.back().seconds / count);
    }
    const double tokens_per_second = (input + output - 1) / interval;
    const std::uint32_t assumed = statistics_.empty() ? phase.trace : statistics_[n];
    std::vector<double>& activations = setup.problem.servers[n].activations;
    activations = per_token[assumed];
    for (double& f : activations) f *= tokens_per_second;
    model.passes.push_back({{.tokens = input, .per_second = 1 / interval}});
    // Where several prompts are worked on at once they hardly queue for their turn.
    if (setup.prompts_at_once == 1) model.prompts_per_second.push_back(1 / interval);
    if (output > 1) {
      model.passes.back().push_back({.tokens = 1, .per_second = (output - 1) / interval});
    }
  }
}

Scenario ScenarioReader::Read(const JsonValue& json) {
  json.AllowOnly({"format",        "version",         "name",    "note",
                  "model",         "servers",         "links",   "traces",
                  "users",         "costs",           "prompts", "until_s",
                  "output_tokens", "prompts_at_once", "seed",    "sample_interval_s",
                  "placement",     "migration",       "losses",  "serving",
                  "disks"});
  if (json.At("format").String() != kFormat) json.At("format").Fail(fmt::format("\"{}\"", kFormat));
  json.At("version").Count(1, 1);
  SimulationSetup& setup = scenario_.setup;
  scenario_.name = json.At("name").String();
  ReadModel(json.At("model"), setup.problem);
  ReadServers(json.At("servers"), setup.problem);
  const JsonValue links = json.At("links");
  setup.problem.links = ReadLinks(links, setup.problem);
  if (links.Has("sharing")) {
    const std::string sharing = links.At("sharing").String();
    if (sharing != "pair" && sharing != "egress" && sharing != "both") {
      links.At("sharing").Fail("\"pair\", \"egress\" or \"both\"");
    }
    setup.sharing = sharing == "pair" ? LinkSharing::kPair : LinkSharing::kEgress;
    setup.shares_ingress = sharing == "both";
  }
  const JsonValue costs = json.At("costs");
  setup.costs = costs.IsString() ? Get(ReadCostsFile((own_folder_ / costs.String()).string()))
                                 : ReadCosts(costs);
  setup.workload.prompts = json.At("prompts").Count(1, std::uint64_t{1} << 40);
  setup.workload.until_seconds = json.NumberOr("until_s", 0);
  if (json.Has("output_tokens")) {
    setup.workload.output_tokens =
        static_cast<std::uint32_t>(json.At("output_tokens").Count(1, 1u << 20));
  }
  if (json.Has("prompts_at_once")) {
    setup.prompts_at_once =
        static_cast<std::uint32_t>(json.At("prompts_at_once").Count(1, 1u << 20));
  }
  if (json.Has("serving")) setup.serving = ReadServing(json.At("serving"));
  setup.sample_interval_s = json.NumberOr("sample_interval_s", 60);
  setup.seed = json.Has("seed") ? json.At("seed").Count(0, ~std::uint64_t{0}) : 1;
  ReadTraces(json.At("traces"));
  ReadUsers(json.At("users"));
  ReadPlacement(json.At("placement"));
  if (options_.method) scenario_.method = *options_.method;
  if (options_.seed) setup.seed = *options_.seed;
  if (json.Has("migration") && !json.At("migration").raw().IsNull())
    ReadMigration(json.At("migration"));
  if (json.Has("losses")) ReadLosses(json.At("losses"));
  if (json.Has("disks")) setup.disks = ReadDisks(json.At("disks"), setup.problem.server_count());
  if (options_.method && setup.migration.interval_s > 0) setup.migration.placer = scenario_.method;
  DeriveStatistics();
  setup.migration.options = scenario_.options;
  return std::move(scenario_);
}

Status ApplySet(const std::string& set, Json& json) {
  const std::size_t equals = set.find('=');
  if (equals == std::string::npos || set.empty() || set[0] != '/') {
    return InvalidArgument("'{}', expected a pointer and a value as /servers/0/count=64", set);
  }
  const std::string text = set.substr(equals + 1);
  std::optional<Json> value = Json::Parse(text);
  if (!value) {
    return InvalidArgument("'{}': the value is not JSON (texts need quotes)", set);
  }
  Status status = SetAt(json, set.substr(0, equals), *std::move(value));
  return status.ok() ? status : std::move(status).WithContext(fmt::format("'{}'", set));
}

}  // namespace

Result<ServingCosts> ReadCostsFile(const std::string& path) {
  TROUPE_ASSIGN_OR_RETURN(const std::string text, ReadWhole(path));
  return ReadJson<ServingCosts>(path, text, [](const JsonValue& json) { return ReadCosts(json); });
}

Result<Scenario> LoadScenario(const std::string& path, const ScenarioOptions& options) {
  TROUPE_ASSIGN_OR_RETURN(std::string text, ReadWhole(path));
  if (!options.set.empty()) {
    TROUPE_ASSIGN_OR_RETURN(Json json, ParseJson(path, text));
    for (const std::string& set : options.set) TROUPE_RETURN_IF_ERROR(ApplySet(set, json));
    text = json.Dump();
  }
  TROUPE_ASSIGN_OR_RETURN(Scenario scenario,
                          ReadJson<Scenario>(path, text, [&](const JsonValue& json) {
                            return ScenarioReader(path, options).Read(json);
                          }));
  if (Status valid = Validate(scenario.setup.problem); !valid.ok()) {
    return std::move(valid).WithContext(path);
  }
  return scenario;
}

Status PlaceExperts(Scenario& scenario) {
  TROUPE_ASSIGN_OR_RETURN(const auto placer, MakePlacer(scenario.method, scenario.options));
  TROUPE_ASSIGN_OR_RETURN(scenario.setup.placement, placer->Place(scenario.setup.problem));
  return Validate(scenario.setup);
}

}  // namespace troupe
