#include "runtime/engine_plan.h"

#include <algorithm>

#include "model/kv_cache.h"
#include "model/workspace.h"

namespace troupe {
namespace {

// Code, vocabulary, metadata and what the C library keeps: about 10 MiB with a vocabulary of 4,000
// tokens, 60 MiB with one of 150,000.
constexpr Bytes kProgramBytes = 64_MiB;

}  // namespace

Result<EnginePlan> PlanEngine(const ModelConfig& config, Bytes weights, std::uint32_t cpus,
                              const EngineOptions& options) {
  EnginePlan plan;
  plan.threads = options.threads.value_or(cpus);
  if (plan.threads < 1 || plan.threads > 1024) {
    return InvalidArgument("{} threads, expected 1 to 1024", plan.threads);
  }
  if (plan.threads > cpus) {
    plan.notes.push_back(
        fmt::format("{} threads on {} processors: fewer would be faster", plan.threads, cpus));
  }
  plan.context =
      options.context.value_or(std::min(config.trained_context, EngineOptions::kDefaultContext));
  if (plan.context < 1) return InvalidArgument("a context of 0 tokens, expected at least 1");
  if (plan.context > config.trained_context) {
    plan.notes.push_back(fmt::format("context {} is longer than the {} the model was trained with",
                                     plan.context, config.trained_context));
  } else if (plan.context < config.trained_context && !options.context) {
    plan.notes.push_back(fmt::format("context {} of the trained {}: --ctx asks for more",
                                     plan.context, config.trained_context));
  }
  plan.kv_type = options.kv_type;
  TROUPE_RETURN_IF_ERROR(KvCache::LayoutFor(config, plan.kv_type, plan.context).Check());
  plan.chunk = std::clamp<std::uint32_t>(options.chunk, 1, plan.context);
  plan.weights = weights;
  plan.kv_cache = KvCache::BytesFor(config, plan.kv_type, plan.context);
  plan.workspace =
      Workspace::BytesFor(config, {.chunk = plan.chunk,
                                   .threads = plan.threads,
                                   .kv = KvCache::LayoutFor(config, plan.kv_type, plan.context)});
  plan.budget = options.memory.value_or(Bytes());
  if (options.memory && plan.total() + kProgramBytes > *options.memory) {
    return Error(Code::kResourceExhausted,
                 "{} of memory are too little: weights {}, KV cache {} for {} tokens, workspace {} "
                 "and the program's own {} need {}",
                 ToString(*options.memory), ToString(plan.weights), ToString(plan.kv_cache),
                 plan.context, ToString(plan.workspace), ToString(kProgramBytes),
                 ToString(plan.total() + kProgramBytes));
  }
  return plan;
}

std::vector<std::string> Describe(const EnginePlan& plan) {
  std::vector<std::string> lines = {
      fmt::format("threads       {}", plan.threads),
      fmt::format("context       {} tokens, prompts in chunks of {}", plan.context, plan.chunk),
      fmt::format("weights       {}", ToString(plan.weights)),
      fmt::format("KV cache      {} ({})", ToString(plan.kv_cache), Name(plan.kv_type)),
      fmt::format("workspace     {}", ToString(plan.workspace)),
      fmt::format("in all        {}", ToString(plan.total()))};
  for (const std::string& note : plan.notes) lines.push_back("note          " + note);
  return lines;
}

}  // namespace troupe
