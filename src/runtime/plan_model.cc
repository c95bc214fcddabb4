#include "runtime/plan_model.h"

#include <algorithm>
#include <filesystem>
#include <string_view>
#include <utility>

#include "base/available_cpus.h"
#include "expert/prefetch/worth_prefetch.h"
#include "machine/machine_memory.h"
#include "machine/process_memory.h"
#include "machine/program_files.h"
#include "model/group_router.h"
#include "runtime/buddy_profile.h"
#include "runtime/checked_experts.h"
#include "runtime/draft_plan.h"
#include "runtime/machine_costs.h"
#include "runtime/model_store.h"
#include "runtime/quality_curve.h"
#include "runtime/reading_conditions.h"
#include "runtime/score_tables_file.h"
#include "runtime/vocab_loader.h"
#include "store/model_fingerprint.h"

namespace troupe {
namespace {

// What the process will take besides the plan's parts and what it holds when the plan is made:
// stacks, tables of the loader and the regions, token lists, text on its way out, records.
constexpr Bytes kProgramGrowth = 6_MiB;

Bytes HeldNow() { return HeldForPlan(ResidentMemoryParts(), MappedProgramFiles()); }

// `taken` is what the process holds, or may come to hold by models that are open.
Result<MachineFacts> ReadMachineFacts(const std::string& model, const std::string& container,
                                      const EngineOptions& options, Bytes taken) {
  MachineFacts facts{.cpus = static_cast<std::uint32_t>(AvailableCpus()),
                     .container = !container.empty()};
  facts.costs =
      RememberedCosts(options.threads.value_or(facts.cpus), container.empty() ? model : container);
  facts.program = taken + kProgramGrowth;
  const Result<MachineMemory> memory = ReadMachineMemory();
  if (!memory.ok()) return options.memory ? Result<MachineFacts>(facts) : memory.status();
  // What the process holds already is not free any more, but it is within the budget.
  const Bytes held = ResidentMemory();
  facts.available = DefaultBudget(*memory) + held;
  facts.for_others = ReserveForOthers(*memory);
  facts.limit = memory->limit;
  facts.whole = memory->whole;
  return facts;
}

// Of an engine that reads its experts in place and has sums to compare them with.
Bytes SumBytes(const GgufModel& file, const ExpertLayouts& layouts) {
  const Bytes sums = RecordedSums::BytesBeside(file);
  return sums == Bytes() ? sums : sums + CheckedExperts::BytesFor(layouts);
}

// What calibration left for runs to begin with. A file that was asked for by name has to be the
// model's; one that merely lies there is left alone if it is not.
template <typename Learned, typename Load>
Result<std::optional<Learned>> FindLearned(const std::string& asked, const std::string& beside,
                                           const char* what, EnginePlan& plan, Load load) {
  if (asked == "none") return std::optional<Learned>();
  const bool named = !asked.empty();
  const std::string path = named ? asked : beside;
  std::error_code ignored;
  if (!named && !std::filesystem::exists(path, ignored)) return std::optional<Learned>();
  Result<Learned> learned = load(path);
  if (learned.ok()) {
    plan.notes.push_back(fmt::format("{} begin with what {} has learned", what, path));
    return std::optional(std::move(*learned));
  }
  if (named) return learned.status();
  plan.memory.warnings.push_back(fmt::format("not used: {}", learned.status().message()));
  return std::optional<Learned>();
}

Result<std::optional<ModelProfile>> FindProfile(const GgufModel& file, const std::string& asked,
                                                EnginePlan& plan) {
  return FindLearned<ModelProfile>(
      asked, ProfilePathFor(file.path()), "forecasts", plan,
      [&file](const std::string& path) -> Result<ModelProfile> {
        TROUPE_ASSIGN_OR_RETURN(ModelProfile profile, LoadProfile(path));
        TROUPE_ASSIGN_OR_RETURN(const ModelFingerprint fingerprint, FingerprintModel(file));
        if (profile.fingerprint != ToString(fingerprint)) {
          return InvalidArgument("{}: made for another model; `troupe calibrate` makes it anew",
                                 path);
        }
        return profile;
      });
}

Result<std::optional<ScoreTables>> FindScoreTables(const GgufModel& file, const ModelConfig& config,
                                                   const std::string& asked, EnginePlan& plan) {
  return FindLearned<ScoreTables>(
      asked, ScoresPathFor(file.path()), "chances of misses", plan,
      [&](const std::string& path) -> Result<ScoreTables> {
        TROUPE_ASSIGN_OR_RETURN(const ModelFingerprint fingerprint, FingerprintModel(file));
        return LoadScoreTables(path, TablesOfModel(config, ToString(fingerprint)));
      });
}

void NoteMeasuredWith(const QualityChoice& choice, const std::string& reading,
                      const OffloadOptions& offload, std::vector<std::string>& notes) {
  if (choice.cache != offload.policy || choice.predictor != offload.predictor) {
    notes.push_back(fmt::format("that was measured with --cache {} and --predict {}", choice.cache,
                                choice.predictor));
  }
  if (choice.reading != reading) {
    notes.push_back(
        fmt::format("that was measured with {}; this run: {}", choice.reading, reading));
  }
}

// A head that was asked for by name has to be whole; another one is left alone if it is not.
Result<std::optional<Bytes>> FindHead(const GgufModel& file, const ModelConfig& config,
                                      const EngineOptions& options, std::uint32_t cpus) {
  Result<std::optional<Bytes>> head =
      HeadBytes(file, config, options, options.threads.value_or(cpus));
  if (!head.ok() && options.drafters != DraftChoice{.heads = true}) return std::optional<Bytes>();
  return head;
}

// What a chain is chosen by where a limit or a target was asked for in its place.
struct ChainQuestion {
  const GgufModel& file;
  const std::string& container;
  const OffloadOptions& offload;
  EnginePlan& plan;

  double share() const { return static_cast<double>(plan.memory.slots) / plan.needs.AllExperts(); }
  Result<std::string> Reading() const { return DescribeReading(file.path(), container, offload); }
};

Result<std::string> ChainWithin(const LossLimit& limit, const ChainQuestion& asked) {
  TROUPE_ASSIGN_OR_RETURN(const std::string reading, asked.Reading());
  TROUPE_ASSIGN_OR_RETURN(
      const QualityChoice choice,
      ChooseChainFor(asked.file, asked.share(), limit.share, asked.offload.quality_curve));
  asked.plan.notes.push_back(
      fmt::format("quality {}: {}", ToString(limit), ToString(choice.chain)));
  NoteMeasuredWith(choice, reading, asked.offload, asked.plan.notes);
  return choice.chain.chain;
}

Result<std::string> ChainWithin(const LatencyTarget& target, const ChainQuestion& asked) {
  const OffloadOptions& offload = asked.offload;
  TROUPE_ASSIGN_OR_RETURN(const std::string reading, asked.Reading());
  TROUPE_ASSIGN_OR_RETURN(
      const AlphaChoice choice,
      ChooseAlphaFor(asked.file, asked.share(), target.token_seconds,
                     {.machine = DescribeMachine(asked.plan.threads, offload.link),
                      .cache = offload.policy,
                      .predictor = offload.predictor,
                      .reading = reading},
                     offload.quality_curve));
  asked.plan.notes.push_back(fmt::format("{:.1f} ms a token are expected with alpha {:.3g}{}",
                                         1e3 * choice.seconds, choice.alpha,
                                         choice.meets_target ? "" : ", and less with no other"));
  return choice.alpha > 0 ? fmt::format("smoe:alpha={:.4g}", choice.alpha) : std::string("exact");
}

std::string DescribeSubstitution(const std::string& chain, const OffloadOptions& offload) {
  if (!offload.lossy_guesses_alone) {
    return fmt::format("not exact: missing experts are answered by {}", chain);
  }
  if (chain == "drop") {
    return "guesses for the cloud leave out missing experts; answers leave out none";
  }
  return fmt::format("guesses for the cloud answer missing experts by {}; answers never do", chain);
}

Result<std::string> WantedChain(const ChainQuestion& asked) {
  const Lossiness& lossiness = asked.offload.lossiness;
  if (std::holds_alternative<Exact>(lossiness)) return std::string("exact");
  if (const auto* chain = std::get_if<Chain>(&lossiness)) return chain->policies;
  if (asked.plan.memory.all_resident) {
    asked.plan.memory.notes.push_back("exact, whatever may be lost: every expert is in memory");
    return std::string("exact");
  }
  if (const auto* limit = std::get_if<LossLimit>(&lossiness)) return ChainWithin(*limit, asked);
  return ChainWithin(std::get<LatencyTarget>(lossiness), asked);
}

bool HasExpertFactors(const GgufModel& file) {
  return std::ranges::any_of(file.tensors(), [](const TensorInfo& tensor) {
    return std::string_view(tensor.name).ends_with("_exps.scale");
  });
}

// Before the plan is made, so that what the driver takes of this process's memory is in it.
Result<std::optional<FoundCard>> FindCardFor(const GgufModel& file, const ModelConfig& config,
                                             const ExpertLayouts& layouts,
                                             const EngineOptions& options, PlanFor use,
                                             std::string& why) {
  if (!options.card.wanted()) return std::optional<FoundCard>();
  const char* without = nullptr;
  if (config.moe.routing.experts == 0) {
    without = "the model has no experts";
  } else if (!config.moe.beside_dense && HasExpertFactors(file)) {
    without = "its experts have factors beside their matrices, which the processor applies";
  } else if (config.encoder) {
    without = "an encoder-decoder has layers without experts between others";
  } else if (options.trace) {
    without = "a trace is recorded, of what memory alone does";
  } else if (!std::holds_alternative<Exact>(options.offload.lossiness) ||
             options.offload.low_copies.any()) {
    without = "missing experts may be answered by others, or at lower precision";
  }
  if (without == nullptr) {
    return FindCard(options.card, layouts, use == PlanFor::kOpening, why);
  }
  if (options.card.by_name()) {
    return InvalidArgument("--gpu {}: a card without use: {}", options.card.choice, without);
  }
  return std::optional<FoundCard>();
}

}  // namespace

bool ChoosesByGroups(const ModelConfig& config) {
  return config.moe.routing.groups_used < config.moe.routing.groups;
}

Result<PlannedModel> PlanModel(const std::string& path, const EngineOptions& asked, PlanFor use) {
  TROUPE_ASSIGN_OR_RETURN(GgufModel file, GgufModel::Open(path));
  TROUPE_ASSIGN_OR_RETURN(ModelConfig read_config, ReadModelConfig(file.metadata()));
  auto config = std::make_unique<const ModelConfig>(std::move(read_config));
  TROUPE_ASSIGN_OR_RETURN(Vocab vocab, LoadVocab(file.metadata(), path));
  if (!asked.chat_template.empty()) vocab.chat_template = asked.chat_template;
  Result<ChatPrompts> chat = ChatPrompts::Of(vocab);
  TROUPE_ASSIGN_OR_RETURN(std::unique_ptr<Tokenizer> tokenizer, MakeTokenizer(std::move(vocab)));
  TROUPE_ASSIGN_OR_RETURN(const EngineOptions options, FitToText(asked, *config, *tokenizer));
  if (asked.text) ReturnFreeMemory();  // that finding its tokens took
  TROUPE_ASSIGN_OR_RETURN(ModelFacts facts, InspectModel(file));
  TROUPE_ASSIGN_OR_RETURN(WeightMeasure measure, MeasureWeights(file, *config));

  TROUPE_ASSIGN_OR_RETURN(std::string container, FindContainer(file, options.offload.container));
  std::unique_ptr<PlannedModel> draft;
  if (!options.draft.empty()) {
    TROUPE_ASSIGN_OR_RETURN(draft, PlanDraftModel(options.draft, tokenizer->vocab(), options));
  }
  std::optional<LoadedGate> gate;
  if (!options.offload.gate.choice.exact()) {
    TROUPE_ASSIGN_OR_RETURN(gate, LoadGate(options.offload.gate, file, *config));
    ReturnFreeMemory();  // that reading it took
  }
  EnginePlan plan;
  std::string no_card;
  TROUPE_ASSIGN_OR_RETURN(std::optional<FoundCard> card,
                          FindCardFor(file, *config, measure.experts, options, use, no_card));
  const auto make_plan = [&](Bytes taken) -> Result<Bytes> {
    TROUPE_ASSIGN_OR_RETURN(MachineFacts machine,
                            ReadMachineFacts(path, container, options, taken));
    if (container.empty()) machine.program += SumBytes(file, measure.experts);
    if (draft != nullptr) machine.draft = DraftBytes(draft->plan);
    if (card) machine.card = card->info;
    if (options.drafters.heads && !options.trace) {
      TROUPE_ASSIGN_OR_RETURN(machine.head, FindHead(file, *config, options, machine.cpus));
    }
    if (gate) {
      const auto bytes = [&](std::size_t chunk) {
        return GroupRouter::BytesFor(
            *config, gate->file.gate,
            {.choice = gate->choice, .layers = {0, config->layers}, .chunk = chunk});
      };
      machine.gate = bytes(0);
      machine.gate_row = bytes(1) - bytes(0);
    }
    TROUPE_ASSIGN_OR_RETURN(plan, PlanEngine(*config, measure, machine, options));
    return plan.memory.total();
  };
  PlannedMemory& process = PlannedMemory::OfProcess();
  PlannedMemory::Share planned;
  if (use == PlanFor::kReplacement) {
    TROUPE_RETURN_IF_ERROR(process.Look(HeldNow, make_plan));
  } else {
    TROUPE_ASSIGN_OR_RETURN(planned, process.Add(HeldNow, make_plan));
  }
  if (use == PlanFor::kLook) planned = {};
  if (draft != nullptr) plan.notes.push_back(Describe(options.draft, draft->plan));
  if (!no_card.empty()) plan.notes.push_back("no card: " + no_card);
  const OffloadOptions& offload = options.offload;
  TROUPE_ASSIGN_OR_RETURN(const std::string wanted, WantedChain({file, container, offload, plan}));
  TROUPE_ASSIGN_OR_RETURN(
      const SubstitutionMaterial material,
      LoadMaterial(wanted, file, {.layers = config->layers, .experts = config->moe.routing.experts},
                   offload.buddies));
  TROUPE_ASSIGN_OR_RETURN(
      SubstitutionChain substitution,
      ParseSubstitution(wanted, material,
                        {.most_tokens = std::max(offload.substitution_tokens, options.sequences)}));
  if (substitution.TakesOthers() && ChoosesByGroups(*config)) {
    const TopExpertsParams& routing = config->moe.routing;
    return InvalidArgument(
        "'{}': this model's router chooses in {} of {} groups of experts a token, and substitutes "
        "would come from any; expected a chain of drop, low-bit, top and reunite alone",
        ToString(substitution), routing.groups_used, routing.groups);
  }
  if (gate) plan.notes.push_back(Describe(*gate));
  std::shared_ptr<const RecordedSums> sums;  // a look beside an open model has no memory for them
  if (use != PlanFor::kReplacement) {
    sums = RecordedSums::Beside(file);
    ReturnFreeMemory();  // of the text that they were read from
  }
  std::unique_ptr<ExpertStore> store;
  // A container that was asked for by name is held to its word even if it is not needed today.
  const bool named = !options.offload.container.empty() && options.offload.container != "none";
  if (!plan.memory.all_resident || named) {
    TROUPE_ASSIGN_OR_RETURN(store, OpenModelStore(file, measure.experts, container, sums));
  }
  std::optional<ModelProfile> profile;
  if (!plan.memory.all_resident || !options.offload.profile.empty()) {
    TROUPE_ASSIGN_OR_RETURN(profile, FindProfile(file, options.offload.profile, plan));
  }
  std::optional<ScoreTables> score_tables;
  const bool named_tables =
      !options.offload.score_tables.empty() && options.offload.score_tables != "none";
  if (WorthPrefetch::IsMeant(options.offload.predictor) &&
      (!plan.memory.all_resident || named_tables)) {
    TROUPE_ASSIGN_OR_RETURN(score_tables,
                            FindScoreTables(file, *config, offload.score_tables, plan));
  }
  if (!substitution.exact() && plan.memory.all_resident) {
    plan.notes.push_back("nothing is substituted: every expert is in memory");
  } else if (!substitution.exact()) {
    plan.notes.push_back(DescribeSubstitution(ToString(substitution), offload));
  }
  if (options.offload.low_copies.any() && plan.memory.all_resident) {
    plan.notes.push_back("low copies are not read: every expert is in memory");
  } else if (options.offload.low_copies.any()) {
    plan.notes.push_back(
        fmt::format("{}: low copies may answer ({})",
                    offload.lossy_guesses_alone ? "guesses for the cloud alone" : "not exact",
                    ToString(offload.low_copies)));
  }
  if (options.offload.peer_answers != RowForm::kFloat && !plan.memory.all_resident) {
    plan.notes.push_back(fmt::format("not exact: peers answer in {}, where no request wants more",
                                     ToString(options.offload.peer_answers)));
  }
  LowExperts low;
  if (!plan.memory.all_resident &&
      (options.offload.low_copies.any() || substitution.NeedsLowCopies())) {
    TROUPE_ASSIGN_OR_RETURN(low, OpenLowExperts(file, measure.experts, container));
  }
  return PlannedModel{.file = std::move(file),
                      .config = std::move(config),
                      .tokenizer = std::move(tokenizer),
                      .chat = std::move(chat),
                      .facts = std::move(facts),
                      .measure = std::move(measure),
                      .container = std::move(container),
                      .plan = std::move(plan),
                      .planned = std::move(planned),
                      .sums = std::move(sums),
                      .store = std::move(store),
                      .profile = std::move(profile),
                      .score_tables = std::move(score_tables),
                      .low = std::move(low),
                      .substitution = std::move(substitution),
                      .gate = std::move(gate),
                      .gpu = card ? std::move(card->gpu) : std::nullopt,
                      .draft = std::move(draft)};
}

}  // namespace troupe
