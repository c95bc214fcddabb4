// `troupe plan`: what a model would take of a memory budget, what would stay in memory, and how
// fast it should run, without loading a weight.

#include <algorithm>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "expert/flow/speed_estimate.h"
#include "machine/process_memory.h"
#include "runtime/machine_costs.h"
#include "runtime/model_work.h"
#include "runtime/plan_model.h"
#include "store/container_format.h"
#include "troupe/commands.h"
#include "troupe/engine_flags.h"
#include "troupe/json_record.h"
#include "troupe/options.h"
#include "troupe/serving_needs.h"

namespace troupe {
namespace {

constexpr std::uint32_t kPrompt = 512;

struct Expectation {
  SpeedEstimate speed;
  Bytes dense_read;       // from memory, for one token
  bool measured = false;  // now, rather than remembered
  bool saved = false;     // so that runs know it

  std::string_view Source() const {
    if (!measured) return "measured before of this machine";
    return saved ? "measured now of this machine"
                 : "measured now of this machine, with too little memory to keep it for runs "
                   "(`troupe probe MODEL` does)";
  }
};

// Of the container that `troupe pack` would write.
Bytes ContainerBytes(const PlannedModel& model) {
  ContainerIndex index{.model = {},
                       .experts = model.config->moe.routing.experts,
                       .precisions = std::vector<std::vector<ContainerLayer>>(1)};
  for (const ExpertLayout& layout : model.measure.experts) {
    if (layout.empty()) continue;
    index.precisions[0].push_back({.expert_bytes = layout.SlotBytes(), .checksums = {}});
  }
  return Bytes(PlaceExperts(index));
}

class PlanCommand final : public Command {
 public:
  void AddOptions(Options& options) override {
    engine_.AddTo(options);
    engine_.AddSpeculation(options);
    options.Heading(kBasicHeading);
    AddParallelOption(
        options, parallel_,
        "Plan for `troupe serve` with this many requests at the same time: a KV cache "
        "for each, and what the server itself takes (off: as for `troupe run`)");
    options.AddFlag("--fresh", fresh_, "Measure the machine again");
    options.Heading(kOutputHeading);
    AddJsonOption(options, json_);
  }

  Status Run() override {
    if (parallel_) PlanForServing({.parallel = *parallel_}, /*held=*/Bytes(), engine_);
    TROUPE_ASSIGN_OR_RETURN(std::optional<PlannedModel> model,
                            PlanModel(engine_.model(), engine_.options()));
    TROUPE_ASSIGN_OR_RETURN(const Expectation expected, Expect(*model));
    if (expected.saved) {  // a run would plan by it, in a process that has measured nothing
      model.reset();
      ReturnFreeMemory();
      TROUPE_ASSIGN_OR_RETURN(model, PlanModel(engine_.model(), engine_.options()));
    }
    if (json_ != "-") Print(*model, expected);
    if (json_.empty()) return OkStatus();
    return WriteJson(Record(*model, expected), json_);
  }

 private:
  Result<Expectation> Expect(const PlannedModel& model) const {
    const EngineOptions options = engine_.options();
    CostQuestion question{.threads = model.plan.threads,
                          .shapes = DistinctShapes(model.file, model.measure.experts),
                          .reader = options.offload.reader,
                          .fresh = fresh_,
                          .memory = ProbeMemoryWithin(model.plan.memory.budget)};
    if (model.store != nullptr) question.disk_file = model.store->files().front().path();
    CostModelFile file = CostModelFile::Load(ThisMachine());
    TROUPE_ASSIGN_OR_RETURN(MachineCosts costs, AskCosts(question, file));
    const LinkSpeed& link = options.offload.link;
    costs.model.disk = costs.model.disk.Behind(link.bytes_per_second, link.latency_seconds);

    const ModelWork work = WorkOf(model);
    Expectation expected{.dense_read = work.dense + work.head,
                         .measured = costs.AnyMeasured(),
                         .saved = costs.saved};
    const std::uint32_t prompt = std::min(kPrompt, model.plan.context());
    TROUPE_ASSIGN_OR_RETURN(expected.speed, EstimateSpeed(work, model.plan.memory, model.plan.needs,
                                                          costs.model, prompt));
    return expected;
  }

  static std::string Sentence(const EnginePlan& plan, const SpeedEstimate& speed) {
    const MemoryPlan& memory = plan.memory;
    const std::uint32_t experts = plan.needs.AllExperts();
    const std::string fits =
        memory.all_resident
            ? fmt::format("everything fits into {}", ToString(memory.total()))
            : fmt::format("{} of {} experts ({:.0f} %) fit into {}", memory.slots, experts,
                          100.0 * memory.slots / experts, ToString(memory.budget));
    return fmt::format("{}: expect {:.1f} tokens/s of an answer, {:.1f} tokens/s of a prompt", fits,
                       speed.DecodeTokensPerSecond(), speed.PrefillTokensPerSecond());
  }

  // A run with a prompt knows how long its text becomes; a plan does not.
  bool MayPlanMoreThanARun(const MemoryPlan& memory) const {
    return !memory.all_resident && !parallel_ && !engine_.options().context;
  }

  void Print(const PlannedModel& model, const Expectation& expected) const {
    const EnginePlan& plan = model.plan;
    fmt::print("{}\n\n", Sentence(plan, expected.speed));
    for (const std::string& line : Describe(plan)) fmt::print("{}\n", line);
    if (model.store != nullptr) {
      fmt::print("loaded from   {} ({})\n", model.store->files().front().path(),
                 model.store->name());
    }
    if (model.store != nullptr && !model.store->direct()) {
      fmt::print("pack          `troupe pack` makes loads faster, and takes {} more of the disk\n",
                 ToString(ContainerBytes(model)));
    }
    if (MayPlanMoreThanARun(plan.memory)) {
      fmt::print(
          "run           plans a context for its prompt and -n alone, and the rest for experts "
          "(--ctx shows it)\n");
    }
    const SpeedEstimate& speed = expected.speed;
    fmt::print("\nExpected{}, from what was {}:\n",
               plan.memory.sequences > 1 ? " of one request alone" : "", expected.Source());
    fmt::print(
        "decode        {:.1f} tokens/s: {:.2f} ms to compute, {:.2f} ms waiting for the disk\n",
        speed.DecodeTokensPerSecond(), speed.decode.compute_seconds * 1e3,
        speed.decode.wait_seconds * 1e3);
    fmt::print("prefill       {:.1f} tokens/s for a prompt of {}\n", speed.PrefillTokensPerSecond(),
               speed.prompt);
    if (plan.memory.all_resident) {
      fmt::print("assumed       a context that is nearly empty\n");
      return;
    }
    fmt::print("a token       reads {} from the disk, {:.1f} experts of {}\n",
               ToString(Bytes(static_cast<std::uint64_t>(speed.decode.bytes_read))),
               speed.decode.experts_read, plan.needs.WorkingSet());
    fmt::print(
        "at worst      {:.1f} tokens/s, at best {:.1f}: with no load hidden behind "
        "computing, with all\n",
        speed.SlowestDecode(), speed.FastestDecode());
    fmt::print(
        "assumed       {:.1f} % hits, as if all experts were used equally often "
        "(routing that repeats itself hits more); a context that is nearly empty\n",
        100 * speed.hit_rate);
  }

  Json Record(const PlannedModel& model, const Expectation& expected) const {
    const MemoryPlan& memory = model.plan.memory;
    const SpeedEstimate& speed = expected.speed;
    Json notes = memory.notes;
    for (const std::string& note : model.plan.notes) notes.push_back(note);
    Json record;
    record["model"] = engine_.model();
    record["threads"] = model.plan.threads;
    record["context"] = memory.context;
    record["sequences"] = memory.sequences;
    record["kv_positions"] = memory.kv_positions;
    record["chunk"] = memory.chunk;
    record["memory_budget_bytes"] = memory.budget.count();
    record["planned_bytes"] = memory.total().count();
    record["program_bytes"] = memory.program.count();
    record["connections_bytes"] = memory.serving.connections.count();
    record["rules_bytes"] = memory.serving.rules.count();
    record["peers_bytes"] = memory.serving.peers.count();
    record["requests_bytes"] = memory.serving.requests.count();
    record["words_bytes"] = memory.serving.words.count();
    record["cuts_bytes"] = memory.serving.cuts.count();
    record["draft_bytes"] = memory.draft.count();
    record["dense_bytes"] = memory.dense.count();
    record["kv_cache_bytes"] = memory.kv_cache.count();
    record["state_bytes"] = memory.state.count();
    record["workspace_bytes"] = memory.workspace.count();
    record["staging_bytes"] = memory.staging.count();
    record["prediction_bytes"] = memory.prediction.count();
    record["expert_bytes"] = memory.experts.count();
    record["all_resident"] = memory.all_resident;
    record["experts"] = model.plan.needs.AllExperts();
    record["expert_slots"] = memory.slots;
    const std::optional<CardPlan>& card = model.plan.card;
    record["card"] = card ? Json(card->name) : Json();
    record["card_slots"] = card ? card->shape.slots : 0;
    record["card_vram_bytes"] = card ? card->total().count() : 0;
    record["store"] = model.store == nullptr ? Json(nullptr) : Json(model.store->name());
    record["notes"] = std::move(notes);
    record["warnings"] = memory.warnings;
    record["expected"] = {{"measured_now", expected.measured},
                          {"hit_rate", speed.hit_rate},
                          {"decode_tokens_per_s", speed.DecodeTokensPerSecond()},
                          {"decode_tokens_per_s_at_worst", speed.SlowestDecode()},
                          {"decode_tokens_per_s_at_best", speed.FastestDecode()},
                          {"decode_compute_s", speed.decode.compute_seconds},
                          {"decode_disk_s", speed.decode.disk_seconds},
                          {"decode_wait_s", speed.decode.wait_seconds},
                          {"bytes_read_per_token", speed.decode.bytes_read},
                          {"dense_bytes_per_token", expected.dense_read.count()},
                          {"prompt_tokens", speed.prompt},
                          {"prefill_tokens_per_s", speed.PrefillTokensPerSecond()},
                          {"prefill_bytes_read", speed.prefill.bytes_read}};
    return record;
  }

  EngineFlags engine_;
  std::optional<std::uint32_t> parallel_;
  bool fresh_ = false;
  std::string json_;
};

}  // namespace

std::unique_ptr<Command> MakePlanCommand() { return std::make_unique<PlanCommand>(); }

}  // namespace troupe
