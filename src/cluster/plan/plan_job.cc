#include "cluster/plan/plan_job.h"

#include <memory>
#include <utility>

namespace troupe {

Result<PlanChoice> ChoosePlan(const PlanJob& job) {
  TROUPE_ASSIGN_OR_RETURN(const std::unique_ptr<Placer> placer,
                          MakePlacer(job.placer, {.latency = job.latency}));
  PlanChoice choice;
  TROUPE_ASSIGN_OR_RETURN(choice.plan, MakePlan(job.facts, *placer));
  choice.adoption = DecideAdoption(job.facts, job.current ? &*job.current : nullptr, choice.plan,
                                   job.seconds_per_remote_row);
  if (choice.adoption.adopt()) OrderPlan(job.facts, job.held, choice.plan);
  return choice;
}

}  // namespace troupe
