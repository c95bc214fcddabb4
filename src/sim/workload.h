// Who asks what when: each server's own users, in phases that may change what they ask about, by a
// Poisson process or at recorded times.
#pragma once

#include <cstdint>
#include <vector>

namespace troupe {

struct RecordedRequest {
  double seconds = 0;  // after the first
  std::uint32_t input_tokens = 1;
  std::uint32_t output_tokens = 1;
};

// What a server's users ask from a time on.
struct UserPhase {
  double from_seconds = 0;
  std::uint32_t trace = 0;      // whose routing their prompts have
  double mean_interval_s = 10;  // of the Poisson process
};

struct ServerUsers {
  std::vector<UserPhase> phases;  // rising, the first from 0
  // If there are any, prompts come at these times with these lengths instead of by Poisson.
  std::vector<RecordedRequest> recorded;
};

struct Workload {
  std::vector<ServerUsers> users;   // by server
  std::uint32_t output_tokens = 1;  // of a Poisson prompt; its input is a whole recorded sequence
  std::uint64_t prompts = 1000;     // in all; then the simulation ends when the last is answered
  double until_seconds = 0;         // if positive, no prompt comes after this
};

}  // namespace troupe
