#include "api/conversions.h"

#include <algorithm>
#include <cmath>

#include "api/answer_rules.h"
#include "text/fill_in.h"
#include "text/first_message.h"

namespace troupe {
namespace {

constexpr std::uint32_t kMostSequences = 1024;
constexpr std::size_t kMostQueue = 1'000'000;
constexpr Nanos kLongestTimeout = 1'000'000'000'000'000'000;  // 31 years

bool Positive(double value) { return std::isfinite(value) && value > 0; }

Status Check(const Lossiness& lossiness) {
  if (const auto* limit = std::get_if<LossLimit>(&lossiness)) {
    if (Positive(limit->share) && limit->share <= 1) return OkStatus();
    return InvalidArgument("a loss of {}, expected a share above 0", limit->share);
  }
  if (const auto* target = std::get_if<LatencyTarget>(&lossiness)) {
    if (Positive(target->token_seconds)) return OkStatus();
    return InvalidArgument("{} seconds a token, expected a time above 0", target->token_seconds);
  }
  return OkStatus();  // a chain is read when the plan is made, with what it may need
}

Status Check(const Reasoning& reasoning) {
  const bool has_empty = std::ranges::find(reasoning.closes, "") != reasoning.closes.end();
  if (reasoning.open.empty() || reasoning.closes.empty() || has_empty) {
    return InvalidArgument("reasoning between texts of which one is empty, expected some text");
  }
  if (reasoning.most_tokens && reasoning.end.empty()) {
    return InvalidArgument("reasoning of at most {} tokens, and no text that ends it",
                           *reasoning.most_tokens);
  }
  return OkStatus();
}

Result<std::vector<TokenId>> EncodeChat(const Conversation& chat, const Tokenizer& tokenizer,
                                        const ChatPrompts& prompts) {
  TROUPE_ASSIGN_OR_RETURN(const RenderedChat rendered, prompts.Render(chat));
  return tokenizer.EncodeSegments(rendered.segments);
}

bool IsChat(const Prompt& prompt) {
  return std::holds_alternative<std::vector<Message>>(prompt) ||
         std::holds_alternative<Conversation>(prompt);
}

KvPages ToKvPages(const PrefixCacheState& state) {
  if (state.page == 0) return {};
  const std::size_t all = state.most / state.page, free = state.free / state.page,
                    cached = state.idle / state.page;
  return {.all = all,
          .free = free,
          .held = all - free - cached,
          .cached = cached,
          .tokens_each = state.page};
}

}  // namespace

Result<EngineOptions> ToEngineOptions(const ModelOptions& options) {
  if (options.sequences < 1 || options.sequences > kMostSequences) {
    return InvalidArgument("{} sequences, expected 1 to {}", options.sequences, kMostSequences);
  }
  if (options.queue > kMostQueue) {
    return InvalidArgument("a queue of {}, expected at most {}", options.queue, kMostQueue);
  }
  if (!Positive(options.pass_seconds)) {
    return InvalidArgument("passes of {} seconds, expected a time above 0", options.pass_seconds);
  }
  EngineOptions engine;
  engine.threads = options.threads;
  engine.context = options.context;
  engine.memory = options.memory;
  engine.offload.container = options.storage.container;
  engine.offload.profile = options.storage.profile;
  engine.offload.quality_curve = options.storage.quality_curve;
  TROUPE_RETURN_IF_ERROR(Check(options.lossiness));
  engine.offload.lossiness = options.lossiness;
  engine.sequences = options.sequences;
  engine.saves_states = options.prefix_cache;
  TROUPE_ASSIGN_OR_RETURN(engine.drafters, ParseDraftChoice(options.speculate));
  engine.draft = options.draft;
  if (options.answer_rules) {
    engine.serving = [sequences = options.sequences](const ModelConfig& config, std::uint32_t) {
      return ServingMemory{.connections = {},
                           .rules = AnswerRules::MostBytes(config.vocabulary, sequences),
                           .peers = {},
                           .requests = {},
                           .words = {}};
    };
  }
  return engine;
}

BatcherOptions ToBatcherOptions(const ModelOptions& options, std::uint32_t pass_rows) {
  return {.limits = {.most_rows = pass_rows, .target_seconds = options.pass_seconds},
          .queue = options.queue};
}

Result<std::vector<TokenId>> EncodePrompt(const Prompt& prompt, const Tokenizer& tokenizer,
                                          const Result<ChatPrompts>& chat) {
  if (const auto* const ids = std::get_if<std::vector<TokenId>>(&prompt)) {
    for (const TokenId id : *ids) {
      if (!tokenizer.Contains(id)) {
        return InvalidArgument("token id {} is not in the vocabulary of {}", id, tokenizer.size());
      }
    }
    return *ids;
  }
  if (const auto* const text = std::get_if<std::string>(&prompt)) return tokenizer.Encode(*text);
  if (const auto* const gap = std::get_if<Gap>(&prompt)) {
    return EncodeFillIn(tokenizer, gap->before, gap->after);
  }
  TROUPE_RETURN_IF_ERROR(chat.status());
  if (const auto* const whole = std::get_if<Conversation>(&prompt)) {
    return EncodeChat(*whole, tokenizer, *chat);
  }
  return EncodeChat({.messages = std::get<std::vector<Message>>(prompt)}, tokenizer, *chat);
}

bool AnswersExactly(const Request& request, const Lossiness& opened) {
  if (request.exact || !request.most_loss) return request.exact;
  const auto* const limit = std::get_if<LossLimit>(&opened);
  return limit == nullptr || limit->share > *request.most_loss;
}

Result<BatchRequest> ToBatchRequest(Request request, const Tokenizer& tokenizer,
                                    const Result<ChatPrompts>& chat, Nanos now) {
  if (std::ranges::find(request.stop, "") != request.stop.end()) {
    return InvalidArgument("an empty stop string stops nowhere, expected some text");
  }
  BatchRequest batch{.prompt = {},
                     .options = {.max_tokens = request.max_tokens,
                                 .sampler = std::move(request.sampling),
                                 .stop = std::move(request.stop),
                                 .ignore_end = request.ignore_end,
                                 .stop_tokens = std::move(request.stop_tokens),
                                 .begun = std::move(request.begun)},
                     .exact = request.exact,
                     .embed = request.embed,
                     .salt = std::move(request.cache_salt)};
  if (request.embed && !batch.options.begun.empty()) {
    return InvalidArgument("the beginning of an answer that is no text, expected none");
  }
  if (request.embed && request.rule) {
    return InvalidArgument("a rule for an answer that is no text, expected none");
  }
  if (request.most_loss && !(*request.most_loss >= 0)) {
    return InvalidArgument("a loss of at most {}, expected a share", *request.most_loss);
  }
  if (request.timeout) {
    if (request.timeout->count() <= 0) {
      return InvalidArgument("a timeout of {} ns, expected some time", request.timeout->count());
    }
    batch.deadline = now + std::min<Nanos>(request.timeout->count(), kLongestTimeout);
  }
  // Here and not where it is admitted: the engine's thread has others' tokens to compute.
  batch.options.breakers = BreakersOf(batch.options.sampler, tokenizer);
  TROUPE_ASSIGN_OR_RETURN(batch.prompt, EncodePrompt(request.prompt, tokenizer, chat));
  batch.common = EndOfFirstMessage(batch.prompt, tokenizer);
  if (request.reasoning) {
    TROUPE_RETURN_IF_ERROR(Check(*request.reasoning));
    const TextSegment end{.text = request.reasoning->end, .is_template = true};
    TROUPE_ASSIGN_OR_RETURN(batch.options.reasoning_end,
                            tokenizer.EncodeSegments({&end, 1}, /*add_special=*/false));
    batch.options.reasoning = std::move(request.reasoning);
  }
  if (request.show_marks && chat.ok()) {
    batch.options.shown.assign(chat->marks().begin(), chat->marks().end());
  }
  if (IsChat(request.prompt)) {
    for (std::string& stop : chat->StopStrings()) {
      batch.options.stop.push_back(std::move(stop));
    }
  }
  return batch;
}

Plan ToPlan(const EnginePlan& plan, std::string lossiness) {
  const MemoryPlan& memory = plan.memory;
  Plan shown{.threads = plan.threads,
             .context = plan.context(),
             .sequences = memory.sequences,
             .kv_positions = memory.kv_positions,
             .pass_rows = memory.chunk,
             .budget = memory.budget,
             .program = memory.program,
             .connections = memory.serving.connections,
             .rules = memory.serving.rules,
             .peers = memory.serving.peers,
             .requests = memory.serving.requests,
             .words = memory.serving.words,
             .cuts = memory.serving.cuts,
             .draft = memory.draft,
             .dense = memory.dense,
             .kv_cache = memory.kv_cache,
             .state = memory.state,
             .workspace = memory.workspace,
             .staging = memory.staging,
             .prediction = memory.prediction,
             .experts = memory.experts,
             .total = memory.total(),
             .card = plan.card ? plan.card->total() : Bytes(),
             .experts_in_memory = memory.all_resident ? plan.needs.AllExperts() : memory.slots,
             .experts_in_card = plan.card ? plan.card->shape.slots : 0,
             .experts_in_all = plan.needs.AllExperts(),
             .lossiness = std::move(lossiness),
             .notes = {}};
  for (const auto* const lines : {&memory.warnings, &memory.notes, &plan.notes}) {
    shown.notes.insert(shown.notes.end(), lines->begin(), lines->end());
  }
  return shown;
}

std::vector<std::string> Describe(const Plan& plan) {
  std::vector<std::string> lines;
  const auto add = [&](std::string_view name, const std::string& value) {
    lines.push_back(fmt::format("{:<13} {}", name, value));
  };
  add("threads", std::to_string(plan.threads));
  if (plan.kv_positions < std::uint64_t{plan.sequences} * plan.context) {
    add("sequences", fmt::format("{} of up to {} tokens, {} in all", plan.sequences, plan.context,
                                 plan.kv_positions));
  } else {
    add("sequences", fmt::format("{} of {} tokens", plan.sequences, plan.context));
  }
  add("budget", ToString(plan.budget));
  add("program", ToString(plan.program));
  for (const auto& [name, bytes] : {std::pair{"connections", plan.connections},
                                    {"answer rules", plan.rules},
                                    {"peers", plan.peers},
                                    {"draft model", plan.draft}}) {
    if (bytes > Bytes()) add(name, ToString(bytes));
  }
  add("dense weights", ToString(plan.dense));
  add("KV cache", ToString(plan.kv_cache));
  if (plan.state > Bytes()) add("state", ToString(plan.state));
  add("workspace", ToString(plan.workspace));
  if (!plan.AllInMemory()) add("staging", ToString(plan.staging));
  if (!plan.AllInMemory()) add("prediction", ToString(plan.prediction));
  add("experts", fmt::format("{}: {} of {} in memory", ToString(plan.experts),
                             plan.experts_in_memory, plan.experts_in_all));
  add("total", ToString(plan.total));
  if (plan.card > Bytes()) {
    add("card", fmt::format("{} beside it: {} of {} experts", ToString(plan.card),
                            plan.experts_in_card, plan.experts_in_all));
  }
  add("answers", plan.lossiness);
  for (const std::string& note : plan.notes) add("note", note);
  return lines;
}

Metrics ToMetrics(const BatchCounters& counters) {
  return {.requests_waiting = counters.waiting,
          .requests_reading = counters.reading,
          .requests_decoding = counters.decoding,
          .requests_finished = counters.finished,
          .requests_cancelled = counters.cancelled,
          .requests_failed = counters.failed,
          .passes = counters.passes,
          .failed_passes = counters.failed_passes,
          .abandoned_passes = counters.abandoned_passes,
          .pass_seconds = counters.pass_seconds,
          .rule_seconds = counters.rule_seconds,
          .prompt_tokens = counters.prompt_tokens,
          .generated_tokens = counters.generated_tokens,
          .pass_rows = counters.pass_rows,
          .speculation = counters.speculation,
          .draft_rest_passes = counters.drafts_compared.passes,
          .draft_put_right_seconds = counters.drafts_compared.more_saved_seconds,
          .prefix_cache = {.hits = counters.cache_hits,
                           .cached_tokens = counters.cached_tokens,
                           .given_up_tokens = counters.prefix_cache.given_up,
                           .kept_tokens = counters.prefix_cache.kept,
                           .most_tokens = counters.prefix_cache.most},
          .kv_pages = ToKvPages(counters.prefix_cache),
          .experts = counters.experts,
          .card = counters.card};
}

}  // namespace troupe
