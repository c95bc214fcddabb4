// This device as an end sees it: what it has to give, and which part of the model's experts it may
// run of that, looked at again from time to time (split/flow/capability.h).
#pragma once

#include <cstdint>
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

  // Shares follow only what lasts, but for the second look, which is the first that knows all.
  Result<DeviceReport> Look(Nanos now);

 private:
  const Options options_;
  Bytes for_experts_;
  std::optional<ProcessorTime> before_;
  SteadyNumber processors_, power_;
};

// What a model's experts take: their bytes, and what computing one was measured to take.
ExpertNeeds NeedsOf(const ModelConfig& config, const ExpertLayouts& layouts,
                    const CostModel& costs);
// Memory that a plan leaves to experts.
Bytes MemoryForExperts(const MemoryPlan& plan);

// "battery 83 %, discharging; cap 15 W of 60 W".
std::string DescribePower(const DeviceState& state);

}  // namespace troupe
