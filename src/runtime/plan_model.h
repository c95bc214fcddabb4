// The first half of opening a model: its file read and checked, its tokenizer built, the plan made,
// its experts' slow tier opened where the plan needs one; no weight is read yet. What `troupe plan`
// shows, and what the engine goes on from.
#pragma once

#include <memory>
#include <string>

#include "base/status.h"
#include "expert/forecast/score_tables.h"
#include "expert/substitution/substitution_spec.h"
#include "gguf/reader.h"
#include "model/config.h"
#include "model/inspect.h"
#include "model/weight_loader.h"
#include "runtime/chat_prompts.h"
#include "runtime/engine_plan.h"
#include "runtime/model_profile.h"
#include "runtime/planned_memory.h"
#include "runtime/recorded_sums.h"
#include "runtime/slot_loads.h"
#include "store/expert_store.h"
#include "text/tokenizer.h"

namespace troupe {

struct PlannedModel {
  GgufModel file;
  std::unique_ptr<const ModelConfig> config;  // the plan points to it
  std::unique_ptr<Tokenizer> tokenizer;
  Result<ChatPrompts> chat;
  ModelFacts facts;
  WeightMeasure measure;  // points into the file's tensor table
  std::string container;  // path; empty: experts are read from the model file itself
  EnginePlan plan;
  PlannedMemory::Share planned;              // what it will take, if it is for opening
  std::shared_ptr<const RecordedSums> sums;  // of its weights; null if nothing was recorded
  std::unique_ptr<ExpertStore> store;        // null if every expert is in memory
  std::optional<ModelProfile> profile;       // if there is one, and it is of use
  std::optional<ScoreTables> score_tables;   // the same
  LowExperts low;                            // empty if every expert is in memory, or they are off
  SubstitutionChain substitution;
  std::optional<LoadedGate> gate;  // absent: the exact one
  std::optional<TestedGpu> gpu;    // of the plan's card; absent: there is none, or it is a look
  std::unique_ptr<PlannedModel> draft;  // a model that guesses for it; null: none does
};

// Its router looks at some groups of its experts only, so that nobody else may name experts.
bool ChoosesByGroups(const ModelConfig& config);

// For opening, what the plan takes counts in the plans to come, while the share that it is given
// lives; a look takes nothing. A replacement is a look at what could be opened once all that is
// open now is closed.
enum class PlanFor { kLook, kReplacement, kOpening };
Result<PlannedModel> PlanModel(const std::string& path, const EngineOptions& options,
                               PlanFor use = PlanFor::kLook);

}  // namespace troupe
