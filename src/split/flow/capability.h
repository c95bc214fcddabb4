// Which part of a model's experts a device may run (EC2MoE's Eq. 2 to 4): what it has free, against
// what an expert takes, as measured. Looked at again while it serves, it changes only where the
// change lasts. Pure.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>

#include "base/bytes.h"
#include "base/clock.h"

namespace troupe {

// Eq. 2.
struct DeviceShare {
  double processors = 1;  // of those that the speeds below were measured with: a part, 0 to 1
  Bytes memory;           // for experts
  double power = 1;       // of what it could use as they were measured, and on the mains
};

// V_expert, of experts that are all alike, and what a token wants of them.
struct ExpertNeeds {
  std::uint32_t experts = 0;  // of the model
  Bytes bytes;                // of one
  double seconds = 0;         // computing one for a token with all processors; 0: not measured
  std::uint32_t a_token = 0;  // experts that a token uses
};

struct CapabilityLimits {
  double most = 0.4;           // of all experts, unless told
  double token_seconds = 0.5;  // of experts, that a token may take
};

struct Capability {
  std::uint32_t experts = 0;  // that the device may run
  double token_seconds = 0;   // of experts, that a token takes there now; 0: not measured
  std::string limit;          // what set the number: "the cap", "memory", "speed"

  bool operator==(const Capability&) const = default;
};

// Where the device is too slow for a token of experts, the experts that fit into the time are what
// it may run of each token, and the same part of all.
Capability CapabilityOf(const DeviceShare& share, const ExpertNeeds& needs,
                        const CapabilityLimits& limits = {});

// Of a battery at that level: less than all only where nothing charges it.
double BatteryShare(std::optional<double> battery, bool discharging);
// Of the power under which speeds were measured: those hold the cap of then, so only one that is
// lower now leaves less.
double CapShare(std::optional<double> cap_watts, std::optional<double> cap_of_then);

// A number that follows another one, once that has been a tenth away from it for a while, on the
// same side.
class SteadyNumber {
 public:
  explicit SteadyNumber(Nanos lasting = 15'000'000'000) : lasting_(lasting) {}

  double Follow(double value, Nanos now);

 private:
  Nanos lasting_;
  std::optional<double> held_;
  std::optional<Nanos> away_since_;
  bool away_above_ = false;
};

}  // namespace troupe
