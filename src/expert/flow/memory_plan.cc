#include "expert/flow/memory_plan.h"

#include <algorithm>

namespace troupe {
namespace {

constexpr std::uint32_t kLeastChunk = 16;  // that it shrinks to for the sake of more slots

// What is left for experts; nothing if the rest alone is too much.
Bytes Left(Bytes budget, Bytes taken) { return budget > taken ? budget - taken : Bytes(); }

class Planner {
 public:
  Planner(const MemoryNeeds& needs, const MemoryRequest& request)
      : needs_(needs), request_(request) {}

  Result<MemoryPlan> Plan() {
    const std::uint32_t context = request_.context;
    const std::uint32_t chunk = std::clamp<std::uint32_t>(request_.chunk, 1, context);
    MemoryPlan resident = Base(context, chunk);
    resident.all_resident = true;
    resident.experts = needs_.experts;
    const bool limited = request_.most_slots.value_or(~0u) < needs_.AllExperts();
    if (resident.total() <= request_.budget && !limited) return resident;
    if (needs_.slot == Bytes()) return ShrinkResident(std::move(resident));

    MemoryPlan plan = WithCache(BestContext(), chunk);
    if (plan.total() > request_.budget) return TooLittle(plan);
    Note(plan);
    return plan;
  }

 private:
  MemoryPlan Base(std::uint32_t context, std::uint32_t chunk) const {
    MemoryPlan plan;
    plan.budget = request_.budget;
    plan.program = needs_.program;
    plan.dense = needs_.dense;
    plan.context = context;
    plan.chunk = std::min(chunk, context);
    plan.kv_cache = needs_.kv_cache(context);
    plan.workspace = needs_.workspace(context, plan.chunk);
    return plan;
  }

  std::uint32_t MostSlots() const {
    return std::max(kLeastSlots, std::min(needs_.AllExperts(), request_.most_slots.value_or(~0u)));
  }

  // With as many slots as fit beside the rest, but at least the least number.
  MemoryPlan WithSlots(std::uint32_t context, std::uint32_t chunk) const {
    MemoryPlan plan = Base(context, chunk);
    plan.staging = needs_.staging;
    plan.prediction = needs_.prediction;
    const std::uint64_t fitting = Left(request_.budget, plan.total()) / needs_.slot;
    plan.slots =
        static_cast<std::uint32_t>(std::clamp<std::uint64_t>(fitting, kLeastSlots, MostSlots()));
    plan.experts = plan.slots * needs_.slot;
    return plan;
  }

  // A long chunk reads each expert once for more tokens, and takes working memory from the cache:
  // it may have an eighth of what both share.
  MemoryPlan WithCache(std::uint32_t context, std::uint32_t chunk) const {
    MemoryPlan plan = WithSlots(context, chunk);
    while (plan.chunk > 1) {
      const bool fits = plan.total() <= request_.budget;
      const bool modest = plan.workspace <= Bytes((plan.workspace + plan.experts).count() / 8);
      const bool costs_nothing = plan.slots == MostSlots();
      if (fits && (modest || costs_nothing || plan.chunk <= kLeastChunk)) break;
      plan = WithSlots(context, plan.chunk / 2);
    }
    return plan;
  }

  // A context nobody asked for may have a quarter of what the dense weights leave.
  std::uint32_t BestContext() const {
    std::uint32_t context = request_.context;
    if (request_.context_given) return context;
    const Bytes left =
        Left(request_.budget, needs_.program + needs_.dense + needs_.staging + needs_.prediction);
    while (context > request_.least_context &&
           (4 * needs_.kv_cache(context) > left ||
            WithCache(context, request_.chunk).total() > request_.budget)) {
      context = std::max(request_.least_context, context / 2);
    }
    return context;
  }

  // A model without experts: only context and chunk can give.
  Result<MemoryPlan> ShrinkResident(MemoryPlan plan) const {
    while (plan.total() > request_.budget && plan.chunk > 1) {
      plan = Shrunk(plan.context, plan.chunk / 2);
    }
    while (plan.total() > request_.budget && !request_.context_given &&
           plan.context > request_.least_context) {
      plan = Shrunk(std::max(request_.least_context, plan.context / 2), plan.chunk);
    }
    if (plan.total() > request_.budget) return TooLittle(plan);
    NoteContext(plan);
    return plan;
  }

  MemoryPlan Shrunk(std::uint32_t context, std::uint32_t chunk) const {
    MemoryPlan plan = Base(context, chunk);
    plan.all_resident = true;
    plan.experts = needs_.experts;
    return plan;
  }

  Status TooLittle(const MemoryPlan& least) const {
    const std::string experts =
        least.all_resident ? ""
                           : fmt::format(", {} for {} of {} experts and {} to load them",
                                         ToString(least.experts), least.slots, needs_.AllExperts(),
                                         ToString(least.staging + least.prediction));
    // Whole mebibytes, and one more: what the program itself takes differs a little from run to
    // run.
    const Bytes advised = 1_MiB * ((least.total() + 2_MiB).count() / (1_MiB).count());
    return Error(Code::kResourceExhausted,
                 "{} of memory are too little, {} are the least: {} for the program and its "
                 "reserve, {} for dense weights, {} for {} tokens of context, {} to work in{}",
                 ToString(request_.budget), ToString(advised), ToString(least.program),
                 ToString(least.dense), ToString(least.kv_cache), least.context,
                 ToString(least.workspace), experts);
  }

  void NoteContext(MemoryPlan& plan) const {
    if (plan.context < request_.context) {
      plan.notes.push_back(
          fmt::format("context {} instead of {}, which would take {} of the memory (--ctx asks for "
                      "more)",
                      plan.context, request_.context, ToString(needs_.kv_cache(request_.context))));
    }
  }

  void Note(MemoryPlan& plan) const {
    NoteContext(plan);
    if (plan.chunk < std::min(request_.chunk, plan.context)) {
      plan.notes.push_back(
          fmt::format("prompts in chunks of {} instead of {}: the memory does more "
                      "for the expert cache",
                      plan.chunk, request_.chunk));
    }
    if (plan.slots < needs_.WorkingSet()) {
      plan.warnings.push_back(
          fmt::format("the cache holds {} experts and one token uses {}: every token waits for the "
                      "disk",
                      plan.slots, needs_.WorkingSet()));
    }
  }

  const MemoryNeeds& needs_;
  const MemoryRequest& request_;
};

}  // namespace

Result<MemoryPlan> PlanMemory(const MemoryNeeds& needs, const MemoryRequest& request) {
  TROUPE_CHECK(request.context >= 1);
  return Planner(needs, request).Plan();
}

std::vector<std::string> Describe(const MemoryPlan& plan, const MemoryNeeds& needs) {
  std::vector<std::string> lines = {
      fmt::format("program       {} with its reserve", ToString(plan.program)),
      fmt::format("dense weights {}", ToString(plan.dense)),
      fmt::format("KV cache      {} for a context of {} tokens", ToString(plan.kv_cache),
                  plan.context),
      fmt::format("workspace     {} for chunks of {}", ToString(plan.workspace), plan.chunk)};
  if (plan.all_resident) {
    if (needs.AllExperts() > 0) {
      lines.push_back(fmt::format("experts       {}: all {} in memory", ToString(plan.experts),
                                  needs.AllExperts()));
    }
  } else {
    lines.push_back(fmt::format("staging       {}", ToString(plan.staging)));
    lines.push_back(fmt::format("prediction    {}", ToString(plan.prediction)));
    lines.push_back(fmt::format("expert cache  {}: {} of {} experts ({:.0f} %), {} each",
                                ToString(plan.experts), plan.slots, needs.AllExperts(),
                                100.0 * plan.slots / needs.AllExperts(), ToString(needs.slot)));
  }
  lines.push_back(
      fmt::format("in all        {} of {}", ToString(plan.total()), ToString(plan.budget)));
  for (const std::string& note : plan.notes) lines.push_back("note          " + note);
  for (const std::string& warning : plan.warnings) lines.push_back("warning       " + warning);
  return lines;
}

}  // namespace troupe
