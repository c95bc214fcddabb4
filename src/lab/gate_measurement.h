// What a group gate costs and saves: a text is scored token by token, as decode goes through it, by
// the exact gate and by groups in turn, on one engine.
#pragma once

#include <functional>
#include <span>

#include "base/status.h"
#include "lab/evaluation.h"
#include "lab/logits_file.h"
#include "model/group_router.h"
#include "runtime/engine.h"

namespace troupe {

// Of one token, seconds.
struct GateTime {
  double gate = 0;  // of all layers (Transformer::gate_seconds)
  double token = 0;
};

struct MeasuredGate {
  GateChoice choice;
  Evaluation evaluation;  // compared with exact
  GateTime exact, groups;
  GroupRouting routing;
};

// `exact`: logits of the same text that the exact gate gave. The engine has a group gate.
Result<MeasuredGate> MeasureGate(Engine& engine, std::span<const TokenId> text,
                                 const LogitsReader& exact, EvaluationOptions evaluation,
                                 const std::function<void(std::size_t, std::size_t)>& progress);

}  // namespace troupe
