#include "runtime/plan_model.h"

#include <utility>

#include "base/available_cpus.h"
#include "runtime/machine_memory.h"
#include "runtime/model_store.h"
#include "runtime/process_memory.h"
#include "runtime/vocab_loader.h"

namespace troupe {
namespace {

// What the process will take besides the plan's parts and what it holds when the plan is made:
// stacks, tables of the loader and the regions, token lists, text on its way out, records.
constexpr Bytes kProgramGrowth = 12_MiB;

Result<MachineFacts> ReadMachineFacts(bool container, const EngineOptions& options) {
  MachineFacts facts{.cpus = static_cast<std::uint32_t>(AvailableCpus()),
                     .program = ResidentMemory() + kProgramGrowth,
                     .container = container};
  if (options.memory) return facts;
  TROUPE_ASSIGN_OR_RETURN(const MachineMemory memory, ReadMachineMemory());
  // What the process holds already is not free any more, but it is within the budget.
  facts.available = DefaultBudget(memory) + ResidentMemory();
  return facts;
}

}  // namespace

Result<PlannedModel> PlanModel(const std::string& path, const EngineOptions& options) {
  TROUPE_ASSIGN_OR_RETURN(GgufModel file, GgufModel::Open(path));
  TROUPE_ASSIGN_OR_RETURN(ModelConfig read_config, ReadModelConfig(file.metadata()));
  auto config = std::make_unique<const ModelConfig>(std::move(read_config));
  TROUPE_ASSIGN_OR_RETURN(Vocab vocab, LoadVocab(file.metadata(), path));
  Result<ChatFormat> chat_format = RecogniseChatFormat(vocab.chat_template);
  TROUPE_ASSIGN_OR_RETURN(std::unique_ptr<Tokenizer> tokenizer, MakeTokenizer(std::move(vocab)));
  TROUPE_ASSIGN_OR_RETURN(ModelFacts facts, InspectModel(file));
  TROUPE_ASSIGN_OR_RETURN(WeightMeasure measure, MeasureWeights(file, *config));

  TROUPE_ASSIGN_OR_RETURN(std::string container, FindContainer(file, options.offload.container));
  TROUPE_ASSIGN_OR_RETURN(const MachineFacts machine,
                          ReadMachineFacts(!container.empty(), options));
  TROUPE_ASSIGN_OR_RETURN(EnginePlan plan, PlanEngine(*config, measure, machine, options));
  std::unique_ptr<ExpertStore> store;
  // A container that was asked for by name is held to its word even if it is not needed today.
  const bool named = !options.offload.container.empty() && options.offload.container != "none";
  if (!plan.memory.all_resident || named) {
    TROUPE_ASSIGN_OR_RETURN(store, OpenModelStore(file, measure.experts, container));
  }
  return PlannedModel{.file = std::move(file),
                      .config = std::move(config),
                      .tokenizer = std::move(tokenizer),
                      .chat_format = std::move(chat_format),
                      .facts = std::move(facts),
                      .measure = std::move(measure),
                      .container = std::move(container),
                      .plan = std::move(plan),
                      .store = std::move(store)};
}

}  // namespace troupe
