// What an engine's options let be inexact, turned off and on again: so that one process answers
// both ways and the answers can be paired.
#pragma once

#include "base/status.h"
#include "expert/substitution/substitution_spec.h"
#include "runtime/engine.h"

namespace troupe {

class LossySwitch {
 public:
  // Fails if nothing in the engine's options may change an answer: neither what stands in for
  // missing experts nor a group gate. The engine must outlive it.
  static Result<LossySwitch> Of(Engine& engine);

  // From the next pass on. What the cache holds stays, less what exact answers may not use. What a
  // chain counted itself begins anew; the engine's usage goes on.
  void SetExact(bool exact);

 private:
  explicit LossySwitch(Engine& engine) : engine_(&engine) {}

  Engine* engine_;
  SubstitutionMaterial material_;
  ChainReport substitution_;  // as the engine was opened with
  LowCopyOptions low_copies_;
};

}  // namespace troupe
