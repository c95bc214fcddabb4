// Eq. 1 as an estimate: the expected time of a pass through its expert layers, where each layer
// takes as long as its slowest call, a call pays for latency, bytes and handling, and hosts and
// links are slower the busier all callers together make them. Eq. 2 only counts calls: it
// ignores which of them are made anyway and what they wait for. Derivation:
// docs/design/placement.md.
#pragma once

#include <cstdint>
#include <vector>

#include "placement/call_routes.h"
#include "placement/latency_model.h"
#include "placement/placement.h"
#include "placement/problem.h"

namespace troupe {

struct LatencyEstimate {
  double seconds = 0;             // a pass through all expert layers, mean over all passes
  std::vector<double> by_server;  // the same, of one server's passes
  double busiest_server = 0;      // share of time that its devices compute; above 1: overloaded
  double busiest_link = 0;
};

// The load on a link that carries everything one server sends.
struct Egress {
  double own = 0, answers = 0;  // shares of time: its own passes' calls, answers to others' calls
  double own_calls = 0;         // calls of a pass in a layer, which begin together
  double own_seconds = 0;       // the seconds that these take
  double own_factor = 1;        // by which its own calls take longer
};

// The waits that hosts and links cause.
struct Congestion {
  std::vector<double> host_wait;  // seconds before a job begins, by server
  // The same for a server's own passes, which do not wait for each other where they take turns.
  std::vector<double> home_wait;
  std::vector<Egress> egress;       // by sender (kEgress)
  std::vector<double> pair_factor;  // by sender * servers + receiver (kPair); empty: all 1
  // The cost to users of a second of a server's passes: more than a second where prompts queue for
  // their turn, since those behind wait, too.
  std::vector<double> home_weight;
  double busiest_server = 0;
  double busiest_link = 0;
};

class LatencyObjective {
 public:
  // Keeps references to both.
  LatencyObjective(const PlacementProblem& problem, const LatencyModel& model);

  LatencyEstimate Evaluate(const HolderTable& holders) const;

  // The parts of it, for a search that changes little at a time. Seconds of one server's passes in
  // one layer, in a second of serving; times home_weight they tell what a small change is worth.
  Congestion Measure(const CallRoutes& routes) const;
  double LayerSeconds(std::uint32_t server, std::uint32_t layer, const CallRoutes& routes,
                      const Congestion& congestion) const;
  double passes_per_second() const { return all_passes_; }

 private:
  // The expected work that one server's pass of one kind brings to one host in one layer.
  struct Visit {
    double assignments = 0;       // a token: (token, expert) pairs
    double miss_log = 0;          // of the chance that a token has no expert there
    std::vector<double> experts;  // that run, by kind of pass
  };
  struct Call {
    double chance = 0;
    double seconds = 0;  // first without, in the end with its wait
    double wait = 0;     // in the mean
    double there = 0;    // bytes
    double each = 0;     // seconds a byte there
  };
  struct Scratch {
    std::vector<Visit> visits;         // by host
    std::vector<std::uint32_t> hosts;  // visited
    std::vector<Call> calls;
  };

  // The time of one server's passes through all layers, in a second of serving.
  double ServerSeconds(std::uint32_t server, const CallRoutes& routes,
                       const Congestion& congestion) const;
  double SecondsOfAPrompt(std::uint32_t server, double layer_seconds) const;
  double PromptRate(std::uint32_t server) const {
    return model_.prompts_per_second.empty() ? 0 : model_.prompts_per_second[server];
  }
  void Collect(std::uint32_t server, std::uint32_t layer, const CallRoutes& routes,
               Scratch& scratch) const;
  double PassSeconds(std::uint32_t server, std::size_t kind, const Congestion& congestion,
                     const Scratch& scratch) const;
  // The factor by which other transfers slow down a call on its way there.
  double CallFactor(std::uint32_t from, std::uint32_t to, const Congestion& congestion) const;
  // The seconds that an answer takes beyond `seconds`.
  double AnswerWait(std::uint32_t from, std::uint32_t to, double seconds,
                    const Congestion& congestion) const;
  void AddSending(std::vector<Call>& calls) const;
  static void AddWaits(std::vector<Call>& calls);

  const PlacementProblem& problem_;
  const LatencyModel& model_;
  std::vector<std::vector<PassKind>> passes_;
  std::vector<double> speeds_;
  std::vector<std::vector<float>> share_;     // [server][expert]: chance that a token goes there
  std::vector<std::vector<float>> miss_log_;  // [server][expert]: of the chance that it does not
  // [server][expert * kinds + kind]: chance that any token of such a pass goes there.
  std::vector<std::vector<float>> touched_;
  double all_passes_ = 0;
  bool has_rates_ = true;
  mutable Scratch scratch_;  // makes a LatencyObjective one thread's
};

}  // namespace troupe
