#include "runtime/draft_plan.h"

#include <algorithm>
#include <utility>

#include "runtime/stream_tail.h"
#include "text/draft/same_vocabulary.h"

namespace troupe {
namespace {

// Rows that it reads of a text at a time: while it does, nobody gets a token.
constexpr std::uint32_t kMostDraftRows = 256;
// It is divided among nothing: what it takes is known to the plan of which it is a part.
constexpr Bytes kAnyBudget = Bytes(std::uint64_t{1} << 50);

}  // namespace

EngineOptions DraftOptions(const EngineOptions& options) {
  EngineOptions draft{.threads = options.threads,
                      .context = options.context,
                      .most_context = options.most_context,
                      .sequences = AnswersWithModels(options.sequences),
                      .kv_type = options.kv_type,
                      .memory = kAnyBudget,
                      .chunk = std::min(options.chunk, kMostDraftRows),
                      .saves_states = false};
  draft.offload.container = "none";
  draft.offload.profile = "none";
  return draft;
}

Result<std::unique_ptr<PlannedModel>> PlanDraftModel(const std::string& path, const Vocab& vocab,
                                                     const EngineOptions& options) {
  TROUPE_ASSIGN_OR_RETURN(PlannedModel draft, PlanModel(path, DraftOptions(options)));
  if (draft.config->HasState()) {
    return InvalidArgument(
        "{}: sequences of this model have a state that does not go back by single tokens, and a "
        "draft model forgets guesses that were wrong",
        path);
  }
  if (draft.config->encoder) {
    return InvalidArgument(
        "{}: an encoder-decoder, and a draft model goes on with a text that it has not read whole",
        path);
  }
  TROUPE_RETURN_IF_ERROR(CheckSameVocabulary(vocab, draft.tokenizer->vocab()));
  return std::make_unique<PlannedModel>(std::move(draft));
}

NextTokenShape HeadShapeOf(const EnginePlan& plan) {
  return {.kv_type = plan.kv_type,
          .context = plan.context(),
          .sequences = AnswersWithModels(plan.memory.sequences),
          .threads = plan.threads};
}

Result<std::optional<Bytes>> HeadBytes(const GgufModel& file, const ModelConfig& config,
                                       const EngineOptions& options, std::uint32_t threads) {
  if (!HasNextTokenHead(file, config)) return std::optional<Bytes>();
  const std::uint32_t context =
      options.context.value_or(std::min(config.trained_context, EngineOptions::kDefaultContext));
  TROUPE_ASSIGN_OR_RETURN(
      const Bytes head, NextTokenHead::BytesFor(file, config,
                                                {.kv_type = options.kv_type,
                                                 .context = std::max<std::uint32_t>(context, 1),
                                                 .sequences = AnswersWithModels(options.sequences),
                                                 .threads = threads}));
  return std::optional(head + options.sequences * StreamTail::BytesFor(config.width));
}

Bytes DraftBytes(const EnginePlan& plan) {
  const MemoryPlan& memory = plan.memory;
  return memory.dense + memory.experts + memory.kv_cache + memory.workspace + plan.logits;
}

std::string Describe(const std::string& path, const EnginePlan& plan) {
  return fmt::format("{} drafts for {} answer{} at a time, {} tokens of each", path,
                     plan.memory.sequences, plan.memory.sequences == 1 ? "" : "s", plan.context());
}

}  // namespace troupe
