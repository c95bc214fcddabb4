// What a node asks of the engine that it serves with, and of whoever has time: nothing waits, and
// NodeParts is told what came of it. A cluster_node.h has a real one, tests a virtual one.
#pragma once

#include "cluster/plan/holding_steps.h"
#include "cluster/plan/plan_job.h"
#include "cluster/spot_sample.h"
#include "runtime/slot_loads.h"

namespace troupe {

class NodeEngine {
 public:
  virtual ~NodeEngine() = default;

  // Lets an expert go, then NodeParts::OnHeld; or, as it is in use, ReleaseLater.
  virtual void Release(const ReleaseStep& step) = 0;
  // Takes in experts: those that were fetched, the others from the own disk. Then OnHeld.
  virtual void Hold(HoldStep step, FetchedExperts fetched) = 0;
  // Computes an answer of a peer again, then OnChecked.
  virtual void Check(SpotCheck check) = 0;
  // Forgets what is kept of earlier requests, then OnForgotten.
  virtual void ForgetKept() = 0;
  // Measures, then OnMeasured.
  virtual void Measure() = 0;
  // Chooses a plan, which takes long, then OnPlanChosen.
  virtual void Choose(PlanJob job) = 0;
  // NodeParts::OnTime has something to do at once.
  virtual void Wake() = 0;
};

}  // namespace troupe
