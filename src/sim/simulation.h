// The discrete-event simulator: servers that answer their users' prompts, one virtual clock.
//
// A prompt waits for its turn at its server. Then it makes passes (its input, then each further
// token), each through all layers: the dense part on one device of the server, then the experts
// that the routing trace names. Those at home run on their devices; for each other server that the
// placement's routes name, a call goes over the link, is handled, runs on the host's devices and
// sends its results back. The layer ends with the slowest of them (Eq. 1). Devices serve first
// come, first served; transfers share their link. A server may be lost for a while: its users turn
// to others and begin again. Who waits for it in vain reads what it needs from its own disk, as
// does everybody for experts that nobody holds then. Servers may have disks of their own: then they
// answer as live nodes do (own_experts.h). Times come from the linear estimator, and everything
// random from the seed: same input, same bytes. Leaves nothing behind: memory is what is in flight.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "base/status.h"
#include "placement/latency_model.h"
#include "placement/placement.h"
#include "placement/placer.h"
#include "placement/problem.h"
#include "sim/losses.h"
#include "sim/own_disk.h"
#include "sim/result.h"
#include "sim/routing_trace.h"
#include "sim/workload.h"

namespace troupe {

enum class Serving {
  kTogether,         // experts that a server lacks are called on others
  kAlone,            // they are loaded from its own host's memory (MoE-Infinity)
  kAloneRedirected,  // the same, and prompts go where the fewest are
};

// What loads for a migration take from serving.
enum class MigrationLoads {
  kBeside,   // nothing: each host's memory has every expert, and copies go on beside computing
  kDevices,  // the time of the device, which computes nothing meanwhile
  kLinks,    // that, and of the links before: experts come from servers that hold them
};

struct MigrationSetup {
  double interval_s = 0;  // 0: the placement stays
  std::string placer = "dancemoe";
  PlacerOptions options;
  MigrationLoads loads = MigrationLoads::kBeside;
};

struct SimulationSetup {
  PlacementProblem problem;
  Placement placement;
  ServingCosts costs;
  LinkSharing sharing = LinkSharing::kPair;
  // What a server gets shares a link as well, with kEgress: a transfer ends when it has passed
  // both.
  bool shares_ingress = false;
  std::vector<RoutingTrace> traces;
  Workload workload;
  std::uint32_t prompts_at_once = 1;  // that a server works on
  Serving serving = Serving::kTogether;
  std::vector<OwnDisk> disks;  // by server; empty: none reads what others hold
  MigrationSetup migration;
  LossSetup losses;
  double sample_interval_s = 60;
  std::uint64_t seed = 1;
};

Status Validate(const SimulationSetup& setup);

// How far the virtual clock has come, told now and then; nothing if nobody wants to know.
using SimulationProgress = std::function<void(double seconds, std::uint64_t answered)>;

// The setup has passed Validate.
Result<SimulationResult> Simulate(const SimulationSetup& setup,
                                  const SimulationProgress& progress = {});

}  // namespace troupe
