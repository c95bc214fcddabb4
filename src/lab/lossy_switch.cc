#include "lab/lossy_switch.h"

#include "runtime/buddy_profile.h"

namespace troupe {

LossySwitch::LossySwitch(Engine& engine, SubstitutionMaterial material)
    : engine_(&engine), material_(std::move(material)) {}

Result<LossySwitch> LossySwitch::Of(Engine& engine) {
  const OffloadedExperts* offloaded = engine.offloaded();
  if (offloaded == nullptr) {
    return InvalidArgument(
        "{}: every expert is in memory, so every answer is exact; --slots makes them be read",
        engine.path());
  }
  if (offloaded->substitution() == nullptr && !offloaded->low_copies().any()) {
    return InvalidArgument(
        "{}: nothing allows an answer that is not exact; --substitute and --low-copy do",
        engine.path());
  }
  const OffloadOptions& options = engine.offload_options();
  TROUPE_ASSIGN_OR_RETURN(const GgufModel file, GgufModel::Open(engine.path()));
  TROUPE_ASSIGN_OR_RETURN(
      SubstitutionMaterial material,
      LoadMaterial(options.substitution, file, offloaded->cache().shape().grid, options.buddies));
  return LossySwitch(engine, std::move(material));
}

void LossySwitch::SetExact(bool exact) {
  OffloadedExperts& experts = *engine_->offloaded();
  const OffloadOptions& options = engine_->offload_options();
  experts.set_low_copies(exact ? LowCopyOptions() : options.low_copies);
  if (exact) {
    experts.set_substitution(SubstitutionChain({}));
    return;
  }
  experts.set_substitution(ParseSubstitution(options.substitution, material_,
                                             {.most_tokens = options.substitution_tokens})
                               .value());  // it was read so when the engine was opened
}

}  // namespace troupe
