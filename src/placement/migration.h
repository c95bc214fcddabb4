// Whether a new placement is worth moving to: Eq. 3 and Eq. 4. How to get there: migration_order.h.
#pragma once

#include <cstdint>
#include <functional>

#include "placement/placement.h"
#include "placement/problem.h"

namespace troupe {

// `to` with as little to move as possible: each server holds the same experts, and one that lies
// there in `from` stays on its device. `to` itself where unequal sizes do not fit that way.
Placement KeepDevices(const PlacementProblem& problem, const Placement& from, Placement to);

// Bytes a second with which an expert comes to a server.
using ComingSpeed = std::function<double(std::uint32_t server, ExpertIndex expert)>;

// T_mig of Eq. 3, as printed: every copy that comes and every copy that goes counts its bytes over
// the device's loading speed, and devices add up although they load at the same time. What comes
// counts over `coming` instead, if it is given.
double MigrationSeconds(const PlacementProblem& problem, const Placement& from, const Placement& to,
                        const ComingSpeed& coming = {});

struct MigrationDecision {
  double seconds_now = 0;        // C(P)
  double seconds_after = 0;      // C(P')
  double migration_seconds = 0;  // T_mig
  // Eq. 4, and there is something to move.
  bool adopt = false;
};

// The problem's activations are the calls counted since the last change of placement. The paper
// adds C, a number of calls, to T_mig, a time; what makes them comparable is what a remote call has
// cost more than a local one, on average since that change.
MigrationDecision DecideMigration(const PlacementProblem& problem, const Placement& from,
                                  const Placement& to, double seconds_per_remote_call,
                                  const ComingSpeed& coming = {});

}  // namespace troupe
