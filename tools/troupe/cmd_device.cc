// `troupe device`: what this machine has to give at the moment, and which part of a model's experts
// it may run beside a cloud.
#include <optional>
#include <string>

#include "base/available_cpus.h"
#include "runtime/machine_costs.h"
#include "runtime/model_work.h"
#include "runtime/plan_model.h"
#include "split/device_watch.h"
#include "split/memory_watch.h"
#include "troupe/asked_server.h"
#include "troupe/commands.h"
#include "troupe/device_link.h"
#include "troupe/json_record.h"
#include "troupe/key_file.h"
#include "troupe/options.h"

namespace troupe {
namespace {

constexpr double kPercent = 100;

class DeviceCommand final : public Command {
 public:
  void AddOptions(Options& options) override {
    AddModelOption(options, "MODEL", model_,
                   "Model whose experts it may run (without a model: only the machine)");
    options
        .Add("--most-experts", most_percent_,
             "Percent of the model's experts that it may run at most (40)")
        .Between(0.0, kPercent)
        .Type("PERCENT");
    options
        .Add("--token-ms", token_ms_,
             "Time that the experts of a token may take; where they take longer it may run fewer "
             "(500)")
        .Between(0.001, 1e6)
        .Type("MS");
    options.Add("--cloud", cloud_, "Measure the link to this `troupe serve --for-ends`, too")
        .Type("URL");
    options.Add("--cloud-key", key_file_, "The key to ask it with, the first line of this file")
        .Type("FILE")
        .Needs("--cloud");
    options.AddFlag("--insecure", insecure_, "Accept any certificate of the cloud")
        .Needs("--cloud");
    options.Add("--memory", memory_, "Budget of which experts have a part (what is free)")
        .Check(CheckSizeHasUnit)
        .Type("SIZE");
    AddThreadsOption(options, threads_);
    AddJsonOption(options, json_);
  }

  Status Run() override {
    DeviceWatch::Options watched{
        .cpus = static_cast<std::uint32_t>(AvailableCpus()),
        .for_experts = {},
        .needs = {},
        .limits = {.most = most_percent_ / kPercent, .token_seconds = token_ms_ * 1e-3}};
    if (!model_.empty()) TROUPE_RETURN_IF_ERROR(AskAboutModel(watched));
    DeviceWatch watch(watched);
    const MonotonicClock clock;
    std::optional<LinkSpeedFound> link;
    const auto between = [&]() -> Status {
      if (cloud_.empty()) return WaitForLoad();
      TROUPE_ASSIGN_OR_RETURN(link, MeasureCloud());
      return OkStatus();
    };
    TROUPE_ASSIGN_OR_RETURN(const DeviceReport report, LookTwice(watch, clock, between));
    if (json_ != "-") Print(watched, report, link);
    if (json_.empty()) return OkStatus();
    return WriteJson(Record(watched, report, link), json_);
  }

 private:
  Status AskAboutModel(DeviceWatch::Options& watched) const {
    EngineOptions options;
    options.memory = memory_;
    options.threads = static_cast<std::uint32_t>(threads_);
    TROUPE_ASSIGN_OR_RETURN(const PlannedModel model, PlanModel(model_, options));
    if (model.config->moe.routing.experts == 0) {
      return InvalidArgument("{}: a model without experts", model_);
    }
    CostModelFile file = CostModelFile::Load(ThisMachine());
    const CostQuestion question{.threads = model.plan.threads,
                                .shapes = DistinctShapes(model.file, model.measure.experts)};
    TROUPE_ASSIGN_OR_RETURN(const MachineCosts costs, AskCosts(question, file));
    watched.needs = NeedsOf(*model.config, model.measure.experts, costs.model);
    watched.for_experts = MemoryForExperts(model.plan.memory);
    return OkStatus();
  }

  Result<LinkSpeedFound> MeasureCloud() const {
    AskedServer server{.key = "", .client = {.any_certificate = insecure_}};
    TROUPE_ASSIGN_OR_RETURN(server.url, ParseHttpUrl(cloud_));
    if (!key_file_.empty()) {
      TROUPE_ASSIGN_OR_RETURN(const std::vector<std::string> keys, ReadKeys(key_file_));
      server.key = keys.front();
    }
    return MeasureLink(server);
  }

  // By which a server with these options would give experts back.
  MemoryMarks MarksOf(const DeviceReport& report) const {
    return MarksFor(report.state.memory.available + ResidentMemory(), memory_.has_value());
  }

  void Print(const DeviceWatch::Options& watched, const DeviceReport& report,
             const std::optional<LinkSpeedFound>& link) const {
    const DeviceState& state = report.state;
    if (watched.needs.experts > 0) {
      fmt::print(
          "this machine may run {} of {} experts now, by {}; the experts of a token take {:.2f} "
          "ms\n\n",
          report.capability.experts, watched.needs.experts, report.capability.limit,
          report.capability.token_seconds * 1e3);
    }
    fmt::print("processors  {} of {}, {:.1f} free now\n", state.processors, watched.cpus,
               report.free_processors.value_or(state.processors));
    fmt::print("memory      {} free ({})\n", ToString(state.memory.available), state.memory.limit);
    fmt::print("power       {}\n", DescribePower(state));
    if (link) {
      fmt::print(
          "link        round trip {:.1f} ms with its connection, {:.1f} MB/s up, {:.1f} MB/s "
          "down\n",
          link->round_trip_seconds * 1e3, link->up_bytes_per_second / 1e6,
          link->down_bytes_per_second / 1e6);
    }
    if (watched.needs.experts == 0) return;
    fmt::print("cache       while serving, {}\n", Describe(MarksOf(report), memory_.has_value()));
    fmt::print("expert      {}, {:.1f} us for a token with all processors; a token uses {}\n",
               ToString(watched.needs.bytes), watched.needs.seconds * 1e6, watched.needs.a_token);
  }

  Json Record(const DeviceWatch::Options& watched, const DeviceReport& report,
              const std::optional<LinkSpeedFound>& link) const {
    const DeviceState& state = report.state;
    Json record;
    record["processors"] = {{"all", watched.cpus},
                            {"allowed", state.processors},
                            {"free", NumberOrNull(report.free_processors)}};
    record["memory"] = {{"available_bytes", state.memory.available.count()},
                        {"limit", state.memory.limit}};
    record["power"] = {{"battery", NumberOrNull(state.battery)},
                       {"discharging", state.discharging},
                       {"cap_w", NumberOrNull(state.power_cap_watts)},
                       {"most_w", NumberOrNull(state.power_most_watts)},
                       {"share", report.share.power}};
    record["link"] = nullptr;
    if (link) {
      record["link"] = {{"round_trip_s", link->round_trip_seconds},
                        {"up_bytes_per_s", link->up_bytes_per_second},
                        {"down_bytes_per_s", link->down_bytes_per_second}};
    }
    record["model"] = nullptr;
    if (watched.needs.experts > 0) {
      record["model"] = {{"path", model_},
                         {"experts", watched.needs.experts},
                         {"expert_bytes", watched.needs.bytes.count()},
                         {"expert_s", watched.needs.seconds},
                         {"experts_a_token", watched.needs.a_token},
                         {"memory_for_experts_bytes", watched.for_experts.count()},
                         {"gives_back_below_bytes", MarksOf(report).low.count()},
                         {"takes_again_above_bytes", MarksOf(report).enough.count()}};
      record["capability"] = {{"experts", report.capability.experts},
                              {"limit", report.capability.limit},
                              {"token_s", report.capability.token_seconds}};
    }
    return record;
  }

  std::string model_, cloud_, key_file_, json_;
  bool insecure_ = false;
  double most_percent_ = kPercent * CapabilityLimits().most;
  double token_ms_ = 1e3 * CapabilityLimits().token_seconds;
  std::optional<Bytes> memory_;
  std::size_t threads_ = AvailableCpus();
};

}  // namespace

std::unique_ptr<Command> MakeDeviceCommand() { return std::make_unique<DeviceCommand>(); }

}  // namespace troupe
