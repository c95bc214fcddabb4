// The plan of a draft model: a small model that guesses for another one (draft_engine.h) and lies
// in memory beside it, all of it. What it takes is a part of the other's plan, and counts once. And
// of a head of the model's own (head_draft.h), of which the same holds.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>

#include "base/status.h"
#include "model/next_token_head.h"
#include "runtime/plan_model.h"

namespace troupe {

// Of the engine that runs it. `options` are those of the model that it guesses for.
EngineOptions DraftOptions(const EngineOptions& options);

// kInvalidArgument: it cannot guess for a model of this vocabulary, as its own is another one, or
// as its sequences have a state that does not go back.
Result<std::unique_ptr<PlannedModel>> PlanDraftModel(const std::string& path, const Vocab& vocab,
                                                     const EngineOptions& options);

// What it takes beside what the process holds once it is planned.
Bytes DraftBytes(const EnginePlan& plan);

std::string Describe(const std::string& path, const EnginePlan& plan);

// Of the head of a model that has this plan.
NextTokenShape HeadShapeOf(const EnginePlan& plan);
// What it takes at most, whatever context the plan comes to; absent: the file has none.
Result<std::optional<Bytes>> HeadBytes(const GgufModel& file, const ModelConfig& config,
                                       const EngineOptions& options, std::uint32_t threads);

}  // namespace troupe
