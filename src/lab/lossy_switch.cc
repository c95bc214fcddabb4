#include "lab/lossy_switch.h"

#include "runtime/buddy_profile.h"

namespace troupe {

Result<LossySwitch> LossySwitch::Of(Engine& engine) {
  LossySwitch made(engine);
  const bool by_groups = engine.group_router() != nullptr;
  const std::optional<OffloadReport> offload = engine.offload_report();
  if (!offload) {
    if (by_groups) return made;
    return InvalidArgument(
        "{}: every expert is in memory, so every answer is exact; --slots makes them be read",
        engine.path());
  }
  if (offload->exact() && !by_groups) {
    return InvalidArgument(
        "{}: nothing allows an answer that is not exact; --substitute, --low-copy and --gate do",
        engine.path());
  }
  TROUPE_ASSIGN_OR_RETURN(const GgufModel file, GgufModel::Open(engine.path()));
  TROUPE_ASSIGN_OR_RETURN(made.material_,
                          LoadMaterial(offload->substitution.chain, file, offload->shape.grid,
                                       engine.offload_options().buddies));
  made.substitution_ = offload->substitution;
  made.low_copies_ = offload->low_copies;
  return made;
}

void LossySwitch::SetExact(bool exact) {
  engine_->RouteByGroups(!exact);
  if (exact) return engine_->AnswerBy(SubstitutionChain({}), {});
  engine_->AnswerBy(ParseSubstitution(substitution_.chain, material_, substitution_.limits).value(),
                    low_copies_);  // it was read so when the engine was opened
}

}  // namespace troupe
