#include "runtime/engine_plan.h"

#include <algorithm>

#include "expert/flow/guessed_routes.h"
#include "expert/prefetch/named_ahead.h"
#include "kernels/attention.h"
#include "model/kv_pool.h"
#include "model/workspace.h"
#include "runtime/answer_drafts.h"
#include "runtime/loader_choice.h"
#include "runtime/logit_rows.h"
#include "runtime/model_work.h"
#include "runtime/offloaded_experts.h"
#include "runtime/trace_recorder.h"
#include "text/sampler.h"
#include "text/tokenizer.h"

namespace troupe {
namespace {

// Of all sequences, of texts that are evaluated, and what drawing a token from them takes.
Bytes LogitBytes(const ModelConfig& config, std::uint32_t sequences) {
  return LogitRows::BytesFor(sequences, config.vocabulary) +
         Bytes(EvaluatedRows(config) * config.vocabulary * sizeof(float)) +
         SamplerScratch::BytesFor(config.vocabulary);
}

MemoryNeeds NeedsOf(const ModelConfig& config, const WeightMeasure& weights,
                    const MachineFacts& machine, const EnginePlan& plan,
                    const EngineOptions& options) {
  MemoryNeeds needs;
  needs.program =
      machine.program + (options.beside ? options.beside(config) : Bytes()) + plan.logits;
  needs.draft = machine.draft + (plan.drafters.heads ? machine.head.value_or(Bytes()) : Bytes());
  needs.dense = weights.bytes.dense;
  needs.experts = weights.bytes.experts;
  needs.slot = OffloadedExperts::SlotBytes(weights.experts);
  needs.serving = [&config, serving = options.serving,
                   experts = options.experts_for_peers * needs.slot](std::uint32_t context) {
    ServingMemory memory;
    if (serving) {
      memory = serving(config, context);
      memory.words = Tokenizer::JoinBytes(MostWordBytes(context));
    }
    memory.peers += experts;
    return memory;
  };
  const ExpertGrid grid{.layers = config.layers, .experts = config.moe.routing.experts};
  needs.staging = ExpertLoader::StagingBytes(machine.container, needs.slot, plan.loader);
  const bool by_worth = WorthPrefetch::IsMeant(options.offload.predictor);
  needs.prediction = (by_worth ? WorthPrefetch::BytesFor(grid) : Bytes()) +
                     PredictorBytes(by_worth ? WorthPrefetch::kForPrompts
                                             : std::string_view(options.offload.predictor),
                                    grid) +
                     (plan.drafters.resident ? NamedAhead::BytesFor(grid) : Bytes()) +
                     EvictionPolicyBytes(options.offload.policy, grid, options.sequences);
  if (config.moe.routing.experts > 0) {
    needs.expert_layers = config.MoeLayersIn(plan.layers.first, plan.layers.end);
    needs.experts_per_layer = config.moe.routing.experts;
    needs.experts_per_token = config.moe.routing.top_k;
  }
  needs.state = StatePool::BytesFor(config, plan.layers, {.saved = options.saves_states ? 1u : 0u});
  needs.kv_cache = [&config, layers = plan.layers, type = plan.kv_type](std::uint32_t context) {
    return KvPool::BytesFor(config, layers, {.type = type, .context = context});
  };
  needs.workspace = [&config, layers = plan.layers, type = plan.kv_type, threads = plan.threads,
                     trace = options.trace, drafters = plan.drafters,
                     kept_inputs = plan.kept_inputs, gate = machine.gate,
                     gate_row = machine.gate_row, card = plan.card,
                     sequences = options.sequences](std::uint32_t context, std::uint32_t chunk) {
    const Bytes recorder = trace ? TraceRecorder::BytesFor(config, *trace, chunk) : Bytes();
    Bytes drafts;
    if (drafters.any()) {
      const ExpertGrid routed{.layers = config.layers, .experts = config.moe.routing.experts};
      const auto guesses = std::min<std::size_t>(chunk, sequences * AnswerDrafts::kMost);
      drafts = sequences * DrafterBytes(drafters, context) +
               GuessedRoutes::BytesFor(routed, config.moe.routing.top_k,
                                       static_cast<std::uint32_t>(guesses));
    }
    if (kept_inputs > 0) {
      drafts += StatePool::BytesFor(config, layers, {.sequences = 0, .inputs = kept_inputs});
    }
    const Bytes beside = card ? CardHostBytes(*card, config, chunk) : Bytes();
    return recorder + drafts + gate + chunk * gate_row + beside +
           Workspace::BytesFor(config, {.chunk = chunk,
                                        .threads = threads,
                                        .kv = KvPool::LayoutsFor(config, layers, type, context),
                                        .context = context,
                                        .layers = layers});
  };
  return needs;
}

// What sets the limit, as people call it: of a cgroup the last part of its folder.
std::string NameOfLimit(const MachineFacts& machine) {
  if (!machine.limit.starts_with('/')) return machine.limit;
  const std::size_t end = machine.limit.find_last_not_of('/');
  const std::string folder = machine.limit.substr(0, end == std::string::npos ? 0 : end + 1);
  // A container sees its own group as the root of all.
  if (folder == "/sys/fs/cgroup" || folder == "/sys/fs/cgroup/memory") return "the cgroup";
  return fmt::format("cgroup '{}'", folder.substr(folder.rfind('/') + 1));
}

// What the process may hold. It holds pages of files, too, which count in no limit or in another's:
// what is left and what it holds may be more than all there is.
Bytes MostToHave(const MachineFacts& machine) {
  const Bytes sum = machine.available + machine.for_others;
  return machine.whole > Bytes() ? std::min(sum, machine.whole) : sum;
}

// Why a budget that nobody has named is what it is.
Status Refused(const Status& refused, const MachineFacts& machine, const EngineOptions& options) {
  if (options.memory || machine.limit.empty()) return refused;
  return Error(refused.code(),
               "{}; {} has {} free, of which {} are left to other programs "
               "(--memory takes more)",
               refused.message(), NameOfLimit(machine), ToString(MostToHave(machine)),
               ToString(machine.for_others));
}

// What is done as asked though it hardly can be meant. Said when the model is opened, as the notes
// of memory are.
void NoteOddWishes(const ModelConfig& config, const MachineFacts& machine,
                   const EngineOptions& options, EnginePlan& plan) {
  std::vector<std::string>& notes = plan.memory.notes;
  if (plan.threads > machine.cpus) {
    notes.push_back(fmt::format("{} threads on {} processors: fewer would be faster", plan.threads,
                                machine.cpus));
  }
  if (plan.context() > config.trained_context) {
    notes.push_back(fmt::format("context {} is longer than the {} the model was trained with",
                                plan.context(), config.trained_context));
  }
  if (plan.memory.all_resident && options.offload.fill == FillCache::kYes) {
    notes.emplace_back("--fill on: every expert is in memory, there is no cache to fill");
  }
  const std::uint32_t shallow = options.offload.shallow_layers.value_or(0);
  if (shallow > plan.needs.expert_layers) {
    notes.push_back(fmt::format("{} shallow layers of {} with experts: all of them", shallow,
                                plan.needs.expert_layers));
  }
}

// A plan for more than there is would end in a kill without a word.
void WarnOfMoreThanThereIs(const MachineFacts& machine, MemoryPlan& plan) {
  const Bytes most = MostToHave(machine);
  if (machine.limit.empty() || plan.total() <= most) return;
  const std::string whole =
      machine.whole > Bytes() ? fmt::format(" has {}", ToString(machine.whole)) : "";
  plan.warnings.push_back(fmt::format(
      "{} will be taken and only {} can be had ({}{}): the kernel may end the program, and a "
      "smaller --memory avoids that",
      ToString(plan.total()), ToString(most), NameOfLimit(machine), whole));
}

// They were asked for by name.
bool IsOfHeadsAlone(const DraftChoice& choice) { return choice == DraftChoice{.heads = true}; }

// Which tokens are guessed, and why none are. A draft model that would have no effect is refused.
Status ChooseDrafters(const ModelConfig& config, const MachineFacts& machine,
                      const EngineOptions& options, EnginePlan& plan) {
  DraftChoice asked = options.drafters;
  if (asked.model && options.draft.empty()) {
    asked.model = false;
    if (!asked.any())
      return InvalidArgument("drafts of a draft model, and none was given (--draft)");
  } else if (!asked.model && !options.draft.empty()) {
    return InvalidArgument(
        "{}: a draft model that --speculate does not use, expected auto or draft", options.draft);
  }
  constexpr std::string_view kNoneTraced = "no tokens are drafted while a trace is recorded";
  if (options.trace && asked.model) {
    return InvalidArgument("{}: a draft model without use: {}", options.draft, kNoneTraced);
  }
  if (options.trace) {
    if (asked.any()) plan.notes.emplace_back(kNoneTraced);
    return OkStatus();
  }
  if (asked.heads && !machine.head) {
    if (IsOfHeadsAlone(asked)) {
      return InvalidArgument("drafts of the model's own head, and this file has none");
    }
    asked.heads = false;
  }
  if (asked.resident && config.HasState()) {
    asked.resident = false;
    plan.notes.emplace_back(
        "no tokens are drafted by the experts in memory: sequences of this model have a state, "
        "which does not go back by single tokens");
  }
  plan.drafters = asked;
  return OkStatus();
}

// Of a pass; and where sequences have a state, what is kept until they are checked.
void LimitGuesses(const ModelConfig& config, const EngineOptions& options, EnginePlan& plan) {
  const std::uint32_t chunk = std::max<std::uint32_t>(1, options.chunk);
  if (options.trace || (config.HasState() && !plan.drafters.any())) return;
  plan.most_guesses = config.HasState() ? std::min(kMostGuessesOfStates, chunk - 1) : chunk - 1;
  if (config.HasState() && plan.most_guesses > 0) {
    plan.kept_inputs = plan.most_guesses + std::min(options.sequences, plan.most_guesses);
  }
}

// With every expert in memory such a draft would take as long as the answer does.
void DraftByResidentsWhereItGains(EnginePlan& plan) {
  if (!plan.memory.all_resident || !plan.drafters.resident) return;
  plan.drafters.resident = false;
  if (plan.drafters.any()) return;
  plan.notes.emplace_back("no tokens are drafted by the experts in memory: all of them are there");
}

}  // namespace

std::size_t EvaluatedRows(const ModelConfig& config) {
  constexpr std::size_t kMostBytes = 4 << 20;
  return std::clamp<std::size_t>(kMostBytes / (config.vocabulary * sizeof(float)), 1,
                                 kMostEvaluatedRows);
}

std::size_t MostWordBytes(std::uint32_t context) {
  constexpr std::size_t kLeast = 64 << 10, kOfToken = 4;
  return std::max(kLeast, kOfToken * context);
}

std::uint32_t LongestWholePrompt(const EnginePlan& plan) {
  const std::uint32_t others = plan.memory.sequences - 1;
  return plan.memory.chunk - std::min(others, plan.memory.chunk - 1);
}

std::uint32_t LongestContext(const ModelConfig& config, const EngineOptions& options) {
  return options.context.value_or(
      std::min({config.trained_context, EngineOptions::kDefaultContext, options.most_context}));
}

Result<EngineOptions> FitToText(const EngineOptions& options, const ModelConfig& config,
                                const Tokenizer& tokenizer) {
  EngineOptions fitted = options;
  if (!options.text) return fitted;
  TROUPE_ASSIGN_OR_RETURN(const TextLength text,
                          options.text(tokenizer, LongestContext(config, options)));
  // Pages of keys and values are whole, and so is the context.
  fitted.most_context = std::min<std::uint32_t>(
      options.most_context, static_cast<std::uint32_t>(AlignUp(text.most, Attention::kBlock)));
  fitted.least_context = std::max(options.least_context, text.least);
  fitted.longest_prompt = text.read;
  const std::uint64_t rows = std::max<std::uint64_t>(text.read, AnswerDrafts::kMost + 1);
  fitted.chunk =
      static_cast<std::uint32_t>(std::min<std::uint64_t>(options.chunk, AlignUp(rows, 16)));
  return fitted;
}

Result<EnginePlan> PlanEngine(const ModelConfig& config, const WeightMeasure& weights,
                              const MachineFacts& machine, const EngineOptions& options,
                              std::optional<LayerRange> layers) {
  EnginePlan plan;
  plan.layers = layers.value_or(LayerRange{0, config.layers});
  TROUPE_CHECK(plan.layers.first < plan.layers.end && plan.layers.end <= config.layers);
  if (config.encoder && plan.layers != LayerRange{0, config.layers}) {
    return Error(Code::kUnimplemented,
                 "layers {} to {} of an encoder-decoder, which does not run in parts",
                 plan.layers.first, plan.layers.end - 1);
  }
  plan.threads = options.threads.value_or(machine.cpus);
  if (plan.threads < 1 || plan.threads > 1024) {
    return InvalidArgument("{} threads, expected 1 to 1024", plan.threads);
  }
  MemoryRequest request{
      .budget = options.memory.value_or(machine.available),
      .context = LongestContext(config, options),
      .context_given = options.context.has_value(),
      .least_context = std::max(MemoryRequest().least_context, options.least_context),
      .sequences = options.sequences,
      .least_positions = options.sequences * AlignUp(options.sequence_length, Attention::kBlock),
      .chunk = std::max<std::uint32_t>(1, options.chunk),
      .longest_prompt = options.longest_prompt,
      .most_slots = options.offload.slots};
  if (request.context < 1) return InvalidArgument("a context of 0 tokens, expected at least 1");
  if (options.sequences < 1 || options.sequences > EngineOptions::kMostSequences) {
    return InvalidArgument("{} sequences, expected 1 to {}", options.sequences,
                           EngineOptions::kMostSequences);
  }
  plan.kv_type = options.kv_type;
  plan.trace = options.trace;
  TROUPE_RETURN_IF_ERROR(ChooseDrafters(config, machine, options, plan));
  LimitGuesses(config, options, plan);
  for (const KvLayout& layout :
       KvPool::LayoutsFor(config, plan.layers, plan.kv_type, request.context)) {
    TROUPE_RETURN_IF_ERROR(layout.Check());
  }

  const LoaderChoice loader = ChooseLoader(OffloadedExperts::SlotBytes(weights.experts),
                                           machine.costs, options.offload.link);
  plan.loader = options.offload.loader.value_or(loader.options);
  plan.costs = {.medium = loader.medium, .local = LocalWorkOf(weights.experts, machine.costs)};
  plan.logits = LogitBytes(config, options.sequences);
  if (machine.card) {
    Result<CardPlan> card =
        PlanCard(config, weights.experts, *machine.card, options.card, request.chunk);
    if (card.ok()) {
      plan.card = *std::move(card);
    } else if (options.card.by_name()) {
      return card.status();
    } else {
      plan.notes.push_back("no card: " + card.status().message());
    }
  }
  plan.needs = NeedsOf(config, weights, machine, plan, options);
  Result<MemoryPlan> memory = PlanMemory(plan.needs, request);
  if (plan.drafters.heads && !IsOfHeadsAlone(plan.drafters) &&
      (!memory.ok() || !memory->all_resident)) {
    // Behind a disk a guess or two gain less than the experts that the head's memory holds.
    plan.drafters.heads = false;
    plan.needs = NeedsOf(config, weights, machine, plan, options);
    memory = PlanMemory(plan.needs, request);
  }
  if (!memory.ok()) return Refused(memory.status(), machine, options);
  plan.memory = std::move(memory).value();
  plan.most_guesses = std::min(plan.most_guesses, plan.memory.chunk - 1);
  WarnOfMoreThanThereIs(machine, plan.memory);
  DraftByResidentsWhereItGains(plan);
  if (plan.drafters.heads) {
    plan.notes.push_back(fmt::format("the model's own head guesses for {} answer{} at a time",
                                     AnswersWithModels(options.sequences),
                                     AnswersWithModels(options.sequences) == 1 ? "" : "s"));
  }
  NoteOddWishes(config, machine, options, plan);
  plan.spare_slots = std::min(config.moe.routing.top_k, plan.memory.slots / 4);
  if (request.context < config.trained_context && !options.context) {
    plan.notes.push_back(fmt::format("context {} of the trained {}: {}", plan.context(),
                                     config.trained_context,
                                     request.context == options.most_context
                                         ? "this text becomes no longer (--ctx asks for more)"
                                         : "--ctx asks for more"));
  }
  if (config.encoder) {
    plan.notes.push_back(fmt::format(
        "prompts of at most {} tokens, which the encoder reads at once", LongestWholePrompt(plan)));
  }
  if (!plan.memory.all_resident && !options.offload.loader) plan.notes.push_back(loader.reason);
  return plan;
}

std::vector<std::string> Describe(const EnginePlan& plan) {
  std::vector<std::string> lines = {fmt::format("threads       {}", plan.threads),
                                    fmt::format("KV type       {}", Name(plan.kv_type))};
  for (std::string& line : Describe(plan.memory, plan.needs)) lines.push_back(std::move(line));
  if (plan.card) lines.push_back("card          " + Describe(*plan.card));
  for (const std::string& note : plan.notes) lines.push_back("note          " + note);
  return lines;
}

}  // namespace troupe
