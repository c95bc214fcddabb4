// How the loader reads on this machine: pieces and depth by what was measured of the medium before
// (expert/flow/medium.h), staging by an expert's size. Pure, so that a plan is the same as long as
// nothing is measured anew.
#pragma once

#include <string>

#include "base/bytes.h"
#include "expert/flow/cost_model.h"
#include "expert/flow/miss_plan.h"
#include "io/link_speed.h"
#include "store/expert_loader.h"

namespace troupe {

struct LoaderChoice {
  LoaderOptions options;
  std::string reason;  // a line, of the pieces
  MediumState medium;  // read in these pieces; not measured if nothing is known of it
};

// `costs` may lack what was not measured. A link stands before the disk; of a disk that was not
// measured its speed is all that counts.
LoaderChoice ChooseLoader(Bytes slot, const CostModel& costs, const LinkSpeed& link);

}  // namespace troupe
