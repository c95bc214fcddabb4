#include "lab/lossy_switch.h"

#include "runtime/buddy_profile.h"

namespace troupe {

LossySwitch::LossySwitch(Engine& engine, SubstitutionMaterial material,
                         const OffloadReport& offload)
    : engine_(&engine),
      material_(std::move(material)),
      substitution_(offload.substitution),
      low_copies_(offload.low_copies) {}

Result<LossySwitch> LossySwitch::Of(Engine& engine) {
  const std::optional<OffloadReport> offload = engine.offload_report();
  if (!offload) {
    return InvalidArgument(
        "{}: every expert is in memory, so every answer is exact; --slots makes them be read",
        engine.path());
  }
  if (offload->exact()) {
    return InvalidArgument(
        "{}: nothing allows an answer that is not exact; --substitute and --low-copy do",
        engine.path());
  }
  TROUPE_ASSIGN_OR_RETURN(const GgufModel file, GgufModel::Open(engine.path()));
  TROUPE_ASSIGN_OR_RETURN(SubstitutionMaterial material,
                          LoadMaterial(offload->substitution.chain, file, offload->shape.grid,
                                       engine.offload_options().buddies));
  return LossySwitch(engine, std::move(material), *offload);
}

void LossySwitch::SetExact(bool exact) {
  if (exact) return engine_->AnswerBy(SubstitutionChain({}), {});
  engine_->AnswerBy(ParseSubstitution(substitution_.chain, material_, substitution_.limits).value(),
                    low_copies_);  // it was read so when the engine was opened
}

}  // namespace troupe
