#include "lab/gate_measurement.h"

#include <optional>

#include "base/check.h"
#include "runtime/session.h"

namespace troupe {
namespace {

struct Scored {
  Evaluation evaluation;
  GateTime time;
};

Result<Scored> Score(Engine& engine, bool by_groups, std::span<const TokenId> text,
                     const EvaluationOptions& options, const EvaluationHooks& hooks) {
  engine.RouteByGroups(by_groups);
  TROUPE_ASSIGN_OR_RETURN(Session session, Session::Create(engine));
  const double before = engine.transformer().gate_seconds();
  Scored scored;
  TROUPE_ASSIGN_OR_RETURN(scored.evaluation, Evaluate(session, text, options, hooks));
  const auto fed = static_cast<double>(scored.evaluation.fed);
  scored.time = {.gate = (engine.transformer().gate_seconds() - before) / fed,
                 .token = scored.evaluation.pass_seconds / fed};
  return scored;
}

}  // namespace

Result<MeasuredGate> MeasureGate(Engine& engine, std::span<const TokenId> text,
                                 const LogitsReader& exact, EvaluationOptions evaluation,
                                 const std::function<void(std::size_t, std::size_t)>& progress) {
  TROUPE_CHECK(engine.group_router() != nullptr);
  evaluation.together = 1;
  EvaluationHooks hooks;
  hooks.reference = &exact;
  hooks.progress = progress;
  TROUPE_ASSIGN_OR_RETURN(const Scored plain, Score(engine, false, text, evaluation, hooks));
  const std::optional<Comparison>& compared = plain.evaluation.comparison;
  TROUPE_CHECK(compared.has_value());  // as there is a reference
  if (compared->worst_kl != 0) {
    return Error(Code::kInternal, "exact answers beside a group gate differ from those without");
  }
  TROUPE_ASSIGN_OR_RETURN(Scored grouped, Score(engine, true, text, evaluation, hooks));
  return MeasuredGate{.choice = engine.group_router()->choice(),
                      .evaluation = std::move(grouped.evaluation),
                      .exact = plain.time,
                      .groups = grouped.time,
                      .routing = engine.group_router()->done()};
}

}  // namespace troupe
