// What a pass through a layer costs, as linear functions of its tokens: the estimator that the
// latency objective and the simulator share. Fitted to measurements elsewhere
// (src/sim/linear_fit.h).
#pragma once

#include <cstdint>
#include <vector>

namespace troupe {

// base + each * amount, in seconds.
struct LinearCost {
  double base = 0;
  double each = 0;

  double operator()(double amount) const { return base + each * amount; }
  bool operator==(const LinearCost&) const = default;
};

struct ServingCosts {
  LinearCost expert;  // one expert on n tokens, on a device of speed 1
  LinearCost dense;   // the rest of a layer on n tokens, at home, at speed 1
  LinearCost call;    // handling a call of n bytes at its host: into the device and out
  // A call carries each of its tokens once; the answer one vector for each expert that ran, because
  // the home server adds them up in a fixed order.
  double bytes_per_token = 0;
  double bytes_per_answer = 0;  // 0: as many

  double BytesBack(double assignments) const {
    return assignments * (bytes_per_answer > 0 ? bytes_per_answer : bytes_per_token);
  }

  bool operator==(const ServingCosts&) const = default;
};

// Which transfers share a link's bandwidth.
enum class LinkSharing {
  kPair,    // transfers between the same two servers, each direction for itself
  kEgress,  // everything that a server sends
};

// Passes of one size that a server's users cause: prefill of a prompt, or a token of an answer.
struct PassKind {
  double tokens = 1;
  double per_second = 1;

  bool operator==(const PassKind&) const = default;
};

struct LatencyModel {
  ServingCosts costs;
  LinkSharing sharing = LinkSharing::kPair;
  std::vector<std::vector<PassKind>> passes;  // by server; none: one token at a time, no queues
  // By server, if prompts wait there for their turn, one after the other; none: they do not wait.
  std::vector<double> prompts_per_second;

  bool operator==(const LatencyModel&) const = default;
};

}  // namespace troupe
