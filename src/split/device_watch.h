// This device as an end sees it: what it has to give, and which part of the model's experts it may
// run of that, looked at again from time to time (split/flow/capability.h).
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>

#include "base/clock.h"
#include "base/status.h"
#include "expert/flow/cost_model.h"
#include "expert/flow/memory_plan.h"
#include "machine/device_state.h"
#include "model/config.h"
#include "model/expert_layout.h"
#include "split/flow/capability.h"

namespace troupe {

struct DeviceReport {
  DeviceState state;
  std::optional<double> free_processors;  // absent at the first look
  DeviceShare share;
  // The part of its power that the battery leaves. By this passes are weighed that are measured as
  // the device serves: what they take holds the cap of the moment.
  double battery_power = 1;
  Capability capability;
};

class DeviceWatch {
 public:
  struct Options {
    std::uint32_t cpus = 1;  // that this process may run on
    Bytes for_experts;       // memory
    ExpertNeeds needs;
    CapabilityLimits limits = {};
    std::string root = {};  // of /proc and /sys; a test's
  };
  explicit DeviceWatch(Options options)
      : options_(std::move(options)), for_experts_(options_.for_experts) {}

  // Less than what the options say: others need the rest now. None: all of it.
  void set_memory(std::optional<Bytes> memory) {
    for_experts_ = memory.value_or(options_.for_experts);
  }

  // Shares follow only what lasts, but for the second look, which is the first that knows all. The
  // power cap of the first look is taken for that under which speeds were measured.
  Result<DeviceReport> Look(Nanos now);

 private:
  const Options options_;
  Bytes for_experts_;
  std::optional<ProcessorTime> before_;
  std::optional<double> first_cap_;
  SteadyNumber processors_, power_, battery_;
};

// Takes as long as the load of a device needs to show.
Status WaitForLoad();

// Two looks, as the load shows only between two. `between` takes a while: some tenths of a second,
// by itself or with something else to do. The clock must be that of later looks.
Result<DeviceReport> LookTwice(DeviceWatch& watch, const Clock& clock,
                               const std::function<Status()>& between = WaitForLoad);

// What a model's experts take: their bytes, and what computing one was measured to take.
ExpertNeeds NeedsOf(const ModelConfig& config, const ExpertLayouts& layouts,
                    const CostModel& costs);
// Memory that a plan leaves to experts.
Bytes MemoryForExperts(const MemoryPlan& plan);

// "battery 83 %, discharging; cap 15 W of 60 W".
std::string DescribePower(const DeviceState& state);

}  // namespace troupe
