// Draws the prompts of one server's users, each when the one before has come. Has its own random
// numbers, so that what users ask does not depend on how they are served.
#pragma once

#include <cmath>
#include <cstdint>
#include <optional>

#include "base/rng.h"
#include "sim/routing_trace.h"
#include "sim/workload.h"

namespace troupe {

struct PromptRequest {
  double seconds = 0;
  std::uint32_t trace = 0;
  std::uint32_t first_token = 0;  // of the trace; goes on from its beginning at its end
  std::uint32_t input_tokens = 1;
  std::uint32_t output_tokens = 1;
};

class Arrivals {
 public:
  Arrivals(const ServerUsers& users, const Workload& workload,
           const std::vector<RoutingTrace>& traces, std::uint64_t seed)
      : users_(&users), workload_(&workload), traces_(&traces), rng_(seed) {}

  std::optional<PromptRequest> Next() {
    PromptRequest request;
    if (!users_->recorded.empty()) {
      if (next_ == users_->recorded.size()) return std::nullopt;
      const RecordedRequest& recorded = users_->recorded[next_++];
      request = {.seconds = recorded.seconds,
                 .input_tokens = recorded.input_tokens,
                 .output_tokens = recorded.output_tokens};
    } else {
      if (users_->phases.empty()) return std::nullopt;
      seconds_ -= std::log(1 - rng_.Uniform()) * PhaseAt(seconds_).mean_interval_s;
      request = {.seconds = seconds_, .output_tokens = workload_->output_tokens};
    }
    if (workload_->until_seconds > 0 && request.seconds > workload_->until_seconds) {
      return std::nullopt;
    }
    request.trace = PhaseAt(request.seconds).trace;
    const RoutingTrace& trace = (*traces_)[request.trace];
    const std::size_t sequence = rng_.Below(trace.sequence_starts.size());
    request.first_token = trace.sequence_starts[sequence];
    if (users_->recorded.empty()) request.input_tokens = trace.InputLength(sequence);
    return request;
  }

 private:
  const UserPhase& PhaseAt(double seconds) const {
    const UserPhase* phase = &users_->phases.front();
    for (const UserPhase& later : users_->phases) {
      if (later.from_seconds <= seconds) phase = &later;
    }
    return *phase;
  }

  const ServerUsers* users_;
  const Workload* workload_;
  const std::vector<RoutingTrace>* traces_;
  Rng rng_;
  double seconds_ = 0;
  std::size_t next_ = 0;
};

}  // namespace troupe
