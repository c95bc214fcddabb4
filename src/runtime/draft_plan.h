// The plan of a draft model: a small model that guesses for another one (draft_engine.h) and lies
// in memory beside it, all of it. What it takes is a part of the other's plan, and counts once.
#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include "base/status.h"
#include "runtime/plan_model.h"

namespace troupe {

// Answers that it guesses for at the same time, at most; those beyond have no drafts of it.
inline constexpr std::uint32_t kMostDraftSequences = 4;

// Of the engine that runs it. `options` are those of the model that it guesses for.
EngineOptions DraftOptions(const EngineOptions& options);

// kInvalidArgument: it cannot guess for a model of this vocabulary, as its own is another one, or
// as its sequences have a state that does not go back.
Result<std::unique_ptr<PlannedModel>> PlanDraftModel(const std::string& path, const Vocab& vocab,
                                                     const EngineOptions& options);

// What it takes beside what the process holds once it is planned.
Bytes DraftBytes(const EnginePlan& plan);

std::string Describe(const std::string& path, const EnginePlan& plan);

}  // namespace troupe
