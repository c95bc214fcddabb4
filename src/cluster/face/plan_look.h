// What came of a look whether another plan is better, as the node that leads tells it.
#pragma once

#include <string>

#include "base/clock.h"

namespace troupe {

struct PlanLook {
  Nanos at = 0;
  bool adopted = false;
  std::string why;
  std::string unwritten;  // why the plan was not stored; empty: it was, or is on its way
  // The terms of the paper's Eq. 4, where it decided: of remote calls, and of moving.
  bool weighed = false;
  double seconds_now = 0, seconds_after = 0, migration_seconds = 0;
};

}  // namespace troupe
