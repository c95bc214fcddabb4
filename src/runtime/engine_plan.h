// Options in, plan out, by a pure function: how many threads, how long a context, which form of KV
// cache, what stays in memory and what is loaded when it is needed. The engine obeys the plan;
// --explain and `troupe plan` print it. How memory is divided is expert/flow/memory_plan.h's.
#pragma once

#include <troupe/lossiness.h>

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "base/bytes.h"
#include "base/status.h"
#include "expert/cache/eviction_policy.h"
#include "expert/flow/cost_model.h"
#include "expert/flow/memory_plan.h"
#include "expert/forecast/predictor.h"
#include "expert/prefetch/prefetcher.h"
#include "expert/row_form.h"
#include "expert/substitution/low_copies.h"
#include "io/async_reader.h"
#include "io/throttled_reader.h"
#include "kernels/kv_layout.h"
#include "model/config.h"
#include "model/layer_range.h"
#include "model/weight_loader.h"
#include "runtime/card_plan.h"
#include "runtime/group_gate_file.h"
#include "store/expert_loader.h"
#include "text/draft/drafters.h"

namespace troupe {

class Tokenizer;

enum class CacheSharing {
  kPerLayer,  // each layer has a quota of the slots
  kGlobal     // all layers are one pool
};

// Whether the experts that the profile says are used most are read before the first pass.
enum class FillCache {
  kNo,
  kIfKnown,  // where there is a profile that says it
  kYes       // it is an error if there is none
};

// How experts are brought in if they do not all fit; and by what they are chosen.
struct OffloadOptions {
  std::optional<std::uint32_t> slots;  // experts in memory, at most; absent: as many as fit
  std::string policy = "echo";
  // In place of a policy by name: a researcher's own, or the optimum over a recorded run.
  std::function<std::unique_ptr<EvictionPolicy>(ExpertGrid)> make_policy;
  CacheSharing sharing = CacheSharing::kPerLayer;
  std::string container;  // path; empty: the one beside the model if there is one; "none": the GGUF
  ReaderOptions reader;
  std::optional<LoaderOptions> loader;  // in place of what the medium asks for
  // What the reader is put behind: a test's that fails.
  std::function<std::unique_ptr<AsyncReader>(std::unique_ptr<AsyncReader>)> wrap_reader;
  std::string predictor = "auto";
  std::function<std::unique_ptr<Predictor>(ExpertGrid)> make_predictor;  // in place of the name
  PrefetchOptions prefetch;
  std::optional<std::uint32_t> shallow_layers;  // filled first and fully; absent: by the profile
  std::string profile;  // path; empty: the one beside the model if there is one; "none": no profile
  // The same for what `scores` has learned (score_tables_file.h).
  std::string score_tables;
  FillCache fill = FillCache::kNo;
  LowCopyOptions low_copies;  // off: exact
  Lossiness lossiness = Exact{};
  // What may be lost here is lost by guesses that a cloud checks, and by no answer: the notes say
  // so. Whoever asks the engine sees to it.
  bool lossy_guesses_alone = false;
  // The most tokens of a pass in which a chain of substitution has a say.
  std::uint32_t substitution_tokens = 1;
  std::string buddies;  // path; empty: the file beside the model, if the chain needs it
  // Path of what chains were measured to cost; empty: the one beside the model.
  std::string quality_curve;
  // Experts are handed out in the order of the asks even where slots are short: what answers that
  // are not exact leave in memory is then the same on every run (FlowOptions). A trace implies it.
  bool in_order = false;
  LinkSpeed link;                          // stands in for a slower medium; no limit by default
  RowForm peer_answers = RowForm::kFloat;  // of peers, where there are any; floats: exact
  GateOptions gate;                        // exact, whether all experts fit or not

  bool exact() const {
    return std::holds_alternative<Exact>(lossiness) && !low_copies.any() && gate.choice.exact() &&
           peer_answers == RowForm::kFloat;
  }
};

// Tokens that the one text of an engine comes to: with the shortest answer worth having, and at
// most; and of these those that are read together before the first is answered.
struct TextLength {
  std::uint32_t least = 0, most = 0;
  std::uint32_t read = ~0u;
};

// Which scores of the router a recorded trace has.
enum class TraceScores { kNone, kChosen, kAll };

struct EngineOptions {
  std::optional<std::uint32_t> threads;  // absent: as many as the process may run
  std::optional<std::uint32_t> context;  // absent: the trained context, at most kDefaultContext
  std::uint32_t least_context = 0;       // that a budget may shrink an unasked context to,
  std::uint32_t most_context = ~0u;      // and that it has in any budget
  std::uint32_t sequences = 1;           // that are held at once (session.h)
  std::uint32_t sequence_length = 0;     // that all may have at once, in any budget
  KvType kv_type = KvType::kF16;
  std::optional<Bytes> memory;         // absent: what the machine has free, less a reserve
  std::uint32_t chunk = 512;           // rows that go through the layers together, at most
  std::uint32_t longest_prompt = ~0u;  // of which these are a part, if it is known
  // Of models whose sequences have a state, as many as sequences can be saved for others.
  bool saves_states = true;
  OffloadOptions offload;
  CardOptions card;
  std::optional<TraceScores> trace;  // routing will be recorded: that takes memory
  DraftChoice drafters = {};         // of tokens ahead, for who generates; none: off
  std::string draft = {};            // path of a model that guesses (draft_plan.h); empty: none
  std::string chat_template = {};    // in place of the model's own; empty: that
  // Engine::fingerprint will be asked for: it samples all tensors, from the disk where it must.
  bool fingerprint = false;
  // What the caller will take beside the engine, of a model of this shape; null: hardly anything.
  std::function<Bytes(const ModelConfig&)> beside;
  std::function<ServingMemory(const ModelConfig&, std::uint32_t context)> serving;
  std::uint32_t experts_for_peers = 0;  // that are on their way from or to them, at most
  // How long the one text becomes that the engine is opened for, in a context of `most` tokens or
  // less: an unasked context is planned for it alone. Null: there may be any number of texts.
  std::function<Result<TextLength>(const Tokenizer&, std::uint32_t most)> text;
  // Told of the plan before its memory is taken; null: nobody wants to know.
  std::function<void(const MemoryPlan&)> on_plan;

  static constexpr std::uint32_t kDefaultContext = 4096;
  static constexpr std::uint32_t kMostSequences = 1024;
};

// What a plan depends on besides the model and the options.
struct MachineFacts {
  std::uint32_t cpus = 1;
  Bytes available;        // for the whole process if no budget is given
  Bytes program;          // the process without what the plan divides
  bool container = true;  // experts can be read from a packed container
  CostModel costs;        // as they were measured before, of the disk that experts are read from
  Bytes draft = {};       // what a draft model takes
  std::optional<Bytes> head = {};    // and a head of the model's own that guesses, if it has one
  Bytes gate = {};                   // what a group gate takes,
  Bytes gate_row = {};               // and for each row of a pass
  std::optional<GpuInfo> card = {};  // that was asked for
  Bytes for_others = {};             // what is free beside `available`
  std::string limit = {};  // what sets both: the machine, or a cgroup's folder; empty: not known
  Bytes whole = {};        // all memory of the machine or the cgroup; 0: not known
};

struct EnginePlan {
  LayerRange layers;
  std::uint32_t threads = 1;
  KvType kv_type = KvType::kF16;
  MemoryNeeds needs;
  Bytes logits;  // of these needs' program
  MemoryPlan memory;
  LoaderOptions loader;
  MeasuredCosts costs;               // that misses are answered by
  std::uint32_t spare_slots = 0;     // that belong to no layer's quota
  std::uint32_t shallow_layers = 0;  // whose experts are all kept; known once a profile was read
  std::optional<TraceScores> trace;  // there is room to record one
  DraftChoice drafters;              // of tokens ahead
  std::uint32_t most_guesses = 0;    // of a pass, whoever guesses
  // Rows of a pass of which is kept what they put into their sequences' states: those that may have
  // guesses among them.
  std::uint32_t kept_inputs = 0;
  std::optional<CardPlan> card;    // whose memory holds experts, too
  std::vector<std::string> notes;  // "context 4096 of the trained 32768: --ctx asks for more"

  std::uint32_t context() const { return memory.context; }
};

// Rows of logits that are computed together where a text is evaluated, beside those that each
// sequence has of its last token: enough to read the output matrix seldom, few enough to take
// little of a small budget.
inline constexpr std::size_t kMostEvaluatedRows = 32;
std::size_t EvaluatedRows(const ModelConfig& config);

// Guesses of a pass where sequences have a state: what each row puts into it is kept until the
// check (model/state_replay.h), a MiB a row in a model of 30 such layers of 8192 channels.
inline constexpr std::uint32_t kMostGuessesOfStates = 32;

// Answers that a model or a head guesses for at the same time; those beyond have no such drafts.
inline constexpr std::uint32_t kMostDraftSequences = 4;
constexpr std::uint32_t AnswersWithModels(std::uint32_t sequences) {
  return sequences < kMostDraftSequences ? sequences : kMostDraftSequences;
}

// Longest word of a prompt that a server accepts: 4 bytes for each token of the context, at least
// 64 KiB. Text without any blanks that fits in the context is hardly ever longer.
std::size_t MostWordBytes(std::uint32_t context);

// Tokens of a prompt that has to be read in one pass, beside the next tokens of all other answers.
std::uint32_t LongestWholePrompt(const EnginePlan& plan);

// The longest context that an engine of these options has.
std::uint32_t LongestContext(const ModelConfig& config, const EngineOptions& options);
// These options, with an unasked context for their one text alone, and passes of no more rows than
// it is read in, or drafts of its answer are checked in. Fails as `text` does.
Result<EngineOptions> FitToText(const EngineOptions& options, const ModelConfig& config,
                                const Tokenizer& tokenizer);

// Of the whole model, or of a part of it, whose weights were then measured.
Result<EnginePlan> PlanEngine(const ModelConfig& config, const WeightMeasure& weights,
                              const MachineFacts& machine, const EngineOptions& options,
                              std::optional<LayerRange> layers = std::nullopt);

std::vector<std::string> Describe(const EnginePlan& plan);

}  // namespace troupe
