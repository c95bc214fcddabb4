#include "split/device_watch.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <thread>
#include <utility>

#include "runtime/model_work.h"

namespace troupe {

Result<DeviceReport> DeviceWatch::Look(Nanos now) {
  DeviceReport report;
  TROUPE_ASSIGN_OR_RETURN(report.state, ReadDeviceState(options_.cpus, options_.root));
  const DeviceState& state = report.state;
  if (!before_) first_cap_ = state.power_cap_watts;
  if (before_) report.free_processors = FreeProcessors(*before_, state.time, options_.cpus);
  before_ = state.time;
  const double cpus = std::max(options_.cpus, 1U);
  double processors = state.processors / cpus;
  if (report.free_processors) {
    // Nobody is turned away for good by a busy moment: what is there at least is a tenth.
    constexpr double kLeast = 0.1;
    processors = std::clamp(*report.free_processors / cpus, kLeast, processors);
    processors = processors_.Follow(processors, now);
  }
  const double battery = BatteryShare(state.battery, state.discharging);
  const double power = std::min(battery, CapShare(state.power_cap_watts, first_cap_));
  report.battery_power = battery_.Follow(battery, now);
  report.share = {
      .processors = processors, .memory = for_experts_, .power = power_.Follow(power, now)};
  report.capability = CapabilityOf(report.share, options_.needs, options_.limits);
  return report;
}

Status WaitForLoad() {
  std::this_thread::sleep_for(std::chrono::milliseconds(300));
  return OkStatus();
}

Result<DeviceReport> LookTwice(DeviceWatch& watch, const Clock& clock,
                               const std::function<Status()>& between) {
  TROUPE_RETURN_IF_ERROR(watch.Look(clock.Now()).status());
  TROUPE_RETURN_IF_ERROR(between());
  return watch.Look(clock.Now());
}

ExpertNeeds NeedsOf(const ModelConfig& config, const ExpertLayouts& layouts,
                    const CostModel& costs) {
  const TopExpertsParams& routing = config.moe.routing;
  ExpertNeeds needs;
  std::uint32_t layers = 0, measured = 0;
  double seconds = 0;
  for (const ExpertLayout& layout : layouts) {
    if (layout.empty()) continue;
    ++layers;
    needs.bytes = std::max(needs.bytes, Bytes(layout.SlotBytes()));
    const ExpertCost* const cost = costs.Find(ShapeKey(layout));
    if (cost == nullptr || !cost->first_row.measured()) continue;
    ++measured;
    seconds += cost->first_row.value;
  }
  needs.experts = layers * routing.experts;
  needs.a_token = layers * routing.top_k;
  if (measured == layers && layers > 0) needs.seconds = seconds / layers;
  return needs;
}

Bytes MemoryForExperts(const MemoryPlan& plan) {
  const Bytes others = plan.total() - plan.experts;
  return plan.budget - std::min(plan.budget, others);
}

std::string DescribePower(const DeviceState& state) {
  constexpr double kPercent = 100;
  std::string text = "on the mains";
  if (state.battery) {
    text = fmt::format("battery {:.0f} %{}", kPercent * *state.battery,
                       state.discharging ? ", discharging" : "");
  }
  if (state.power_cap_watts) {
    text += fmt::format("; cap {:.0f} W", *state.power_cap_watts);
    if (state.power_most_watts) text += fmt::format(" of {:.0f} W", *state.power_most_watts);
  }
  return text;
}

}  // namespace troupe
