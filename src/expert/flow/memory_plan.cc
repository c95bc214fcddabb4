#include "expert/flow/memory_plan.h"

#include <algorithm>
#include <optional>
#include <utility>

namespace troupe {
namespace {

constexpr std::uint32_t kLeastChunk = 16;    // that it shrinks to for the sake of more slots
constexpr std::uint32_t kChunkStep = 16;     // rows by which it grows beyond that
constexpr std::uint32_t kContextStep = 256;  // tokens by which a context grows: a page of keys

// Nothing where more is taken than there was.
Bytes Left(Bytes budget, Bytes taken) { return budget > taken ? budget - taken : Bytes(); }

class Planner {
 public:
  Planner(const MemoryNeeds& needs, const MemoryRequest& request)
      : needs_(needs), request_(request) {}

  Result<MemoryPlan> Plan() {
    const Sizes wanted{.context = request_.context,
                       .contexts = request_.sequences,
                       .chunk = std::clamp(request_.chunk, request_.sequences,
                                           std::max(request_.context, request_.sequences))};
    MemoryPlan resident = Resident(wanted);
    const bool limited = request_.most_slots.value_or(~0u) < needs_.AllExperts();
    if (resident.total() <= request_.budget && !limited) return resident;
    if (needs_.slot == Bytes()) return ShrinkResident(wanted);

    Sizes sizes = Least();
    MemoryPlan plan = WithSlots(sizes, kLeastSlots);
    if (plan.total() > request_.budget) return TooLittle(plan);
    // Contexts are large steps, and so come first: what the next one would take is for the others.
    while (sizes.contexts < wanted.contexts) {
      Sizes more = sizes;
      ++more.contexts;
      MemoryPlan larger = WithSlots(more, kLeastSlots);
      if (larger.total() > request_.budget) break;
      sizes = more;
      plan = std::move(larger);
    }
    std::uint32_t most = MostSlots();
    while (const std::optional<Step> next = NextStep(sizes, plan.slots, wanted)) {
      MemoryPlan larger = WithSlots(next->sizes, next->slots);
      if (larger.total() > request_.budget) {
        most = std::max(plan.slots, next->slots - 1);
        break;
      }
      sizes = next->sizes;
      plan = std::move(larger);
    }
    const Bytes left = request_.budget - plan.total();
    const std::uint64_t fitting = plan.slots + left / needs_.slot;
    plan = WithSlots(sizes, static_cast<std::uint32_t>(std::min<std::uint64_t>(fitting, most)));
    Note(plan);
    return plan;
  }

 private:
  // What is chosen besides the slots.
  struct Sizes {
    std::uint32_t context;
    std::uint32_t contexts;  // that the KV cache has room for
    std::uint32_t chunk;
  };

  std::uint32_t LeastContexts(const Sizes& sizes) const {
    const std::uint64_t needed = (request_.least_positions + sizes.context - 1) / sizes.context;
    return static_cast<std::uint32_t>(std::clamp<std::uint64_t>(needed, 1, request_.sequences));
  }

  MemoryPlan Base(const Sizes& sizes) const {
    MemoryPlan plan;
    plan.budget = request_.budget;
    plan.program = needs_.program;
    if (needs_.serving) plan.serving = needs_.serving(sizes.context);
    plan.draft = needs_.draft;
    plan.dense = needs_.dense;
    plan.context = sizes.context;
    plan.sequences = request_.sequences;
    plan.kv_positions = std::uint64_t{sizes.contexts} * sizes.context;
    plan.chunk = std::max(request_.sequences, std::min(sizes.chunk, sizes.context));
    plan.kv_cache = sizes.contexts * needs_.kv_cache(sizes.context);
    plan.state = request_.sequences * needs_.state;
    plan.workspace = needs_.workspace(sizes.context, plan.chunk);
    return plan;
  }

  MemoryPlan Resident(const Sizes& sizes) const {
    MemoryPlan plan = Base(sizes);
    plan.all_resident = true;
    plan.experts = needs_.experts;
    return plan;
  }

  std::uint32_t MostSlots() const {
    return std::max(kLeastSlots, std::min(needs_.AllExperts(), request_.most_slots.value_or(~0u)));
  }

  MemoryPlan WithSlots(const Sizes& sizes, std::uint32_t slots) const {
    MemoryPlan plan = Base(sizes);
    plan.staging = needs_.staging;
    plan.prediction = needs_.prediction;
    plan.slots = slots;
    plan.experts = slots * needs_.slot;
    return plan;
  }

  Sizes Least() const {
    Sizes least{.context = request_.context, .contexts = 1, .chunk = request_.sequences};
    if (!request_.context_given) least.context = std::min(request_.least_context, least.context);
    least.contexts = LeastContexts(least);
    return least;
  }

  // The next larger sizes, and the number of slots with which they come. Sizes are thus a function
  // of the slots that never falls, and so the slots are one of the budget: were each a function of
  // the budget, a size that takes a step up would take slots away.
  struct Step {
    Sizes sizes;
    std::uint32_t slots;
  };
  std::optional<Step> NextStep(const Sizes& sizes, std::uint32_t slots, const Sizes& wanted) const {
    std::optional<Step> next;
    const auto consider = [&](const Sizes& larger) {
      const std::uint32_t from = std::max(slots, SlotsFor(larger));
      if (!next || from < next->slots) next = Step{.sizes = larger, .slots = from};
    };
    if (sizes.contexts == wanted.contexts && sizes.context < wanted.context) {
      Sizes longer = sizes;
      longer.context = std::min(wanted.context, (sizes.context / kContextStep + 1) * kContextStep);
      consider(longer);
    }
    const std::uint32_t most_rows =
        std::min(wanted.chunk, std::max(sizes.context, request_.sequences));
    if (sizes.chunk < most_rows) {
      Sizes wider = sizes;
      wider.chunk = sizes.chunk < kLeastChunk ? std::min(2 * sizes.chunk, kLeastChunk)
                                              : (sizes.chunk / kChunkStep + 1) * kChunkStep;
      wider.chunk = std::min(wider.chunk, most_rows);
      consider(wider);
    }
    return next;
  }

  // The slots that a cache has where the rest may be so large. A context longer than the least that
  // nobody asked for may take a quarter of what the dense weights leave. A long chunk reads each
  // expert once for more tokens, and takes working memory from the cache: it may have an eighth of
  // what both share. A cache that has all experts it may have leaves the rest to the others.
  std::uint32_t SlotsFor(const Sizes& sizes) const {
    const Sizes least = Least();
    const MemoryPlan plan = Base(sizes);
    Bytes experts;
    if (sizes.context > least.context) {
      experts = std::max(
          experts, Left(3 * plan.kv_cache, plan.workspace + plan.serving.total() + plan.state));
    }
    if (plan.chunk > std::max(kLeastChunk, request_.sequences))
      experts = std::max(experts, 7 * plan.workspace);
    const std::uint64_t slots = (experts + needs_.slot - Bytes(1)) / needs_.slot;
    return static_cast<std::uint32_t>(std::clamp<std::uint64_t>(slots, kLeastSlots, MostSlots()));
  }

  // A model without experts: only chunk, context and the contexts' number can give, in this order.
  Result<MemoryPlan> ShrinkResident(Sizes sizes) const {
    const auto too_much = [&] { return Resident(sizes).total() > request_.budget; };
    while (too_much() && Resident(sizes).chunk > request_.sequences) {
      sizes.chunk = Resident(sizes).chunk / 2;
    }
    while (too_much() && !request_.context_given && sizes.context > request_.least_context) {
      sizes.context = std::max(request_.least_context, sizes.context / 2);
    }
    while (too_much() && sizes.contexts > LeastContexts(sizes)) --sizes.contexts;
    MemoryPlan plan = Resident(sizes);
    if (too_much()) return TooLittle(plan);
    NoteContext(plan);
    return plan;
  }

  Status TooLittle(const MemoryPlan& least) const {
    const std::string experts =
        least.all_resident ? ""
                           : fmt::format(", {} for {} of {} experts and {} to load them",
                                         ToString(least.experts), least.slots, needs_.AllExperts(),
                                         ToString(least.staging + least.prediction));
    const Bytes serving = least.serving.total();
    const std::string served =
        serving > Bytes() ? fmt::format(", {} to serve it", ToString(serving)) : "";
    const std::string drafts =
        least.draft > Bytes() ? fmt::format(", {} for the draft model", ToString(least.draft)) : "";
    // Whole mebibytes, and one more: what the program itself takes differs a little from run to
    // run.
    const Bytes advised = 1_MiB * ((least.total() + 2_MiB).count() / (1_MiB).count());
    return Error(
        Code::kResourceExhausted,
        "{} of memory are too little, {} are the least: {} for the program and its "
        "reserve{}{}, {} for dense weights, {} for {} tokens of context,{} {} to work in{}",
        ToString(request_.budget), ToString(advised), ToString(least.program), served, drafts,
        ToString(least.dense), ToString(least.kv_cache), least.context,
        least.state == Bytes() ? ""
                               : fmt::format(" {} for states of sequences,", ToString(least.state)),
        ToString(least.workspace), experts);
  }

  void NoteContext(MemoryPlan& plan) const {
    if (plan.context < request_.context) {
      plan.notes.push_back(
          fmt::format("context {} instead of {}, which would take {} of the memory (--ctx asks for "
                      "more)",
                      plan.context, request_.context,
                      ToString(request_.sequences * needs_.kv_cache(request_.context))));
    }
    const std::uint64_t full = std::uint64_t{plan.sequences} * plan.context;
    if (plan.kv_positions < full) {
      plan.notes.push_back(
          fmt::format("{} sequences share a KV cache of {} tokens: not all can be {} long",
                      plan.sequences, plan.kv_positions, plan.context));
    }
  }

  void Note(MemoryPlan& plan) const {
    NoteContext(plan);
    if (plan.chunk < std::min({request_.chunk, plan.context, request_.longest_prompt})) {
      plan.notes.push_back(
          fmt::format("prompts in chunks of {} instead of {}, which leaves more memory for the "
                      "expert cache",
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
  TROUPE_CHECK(request.context >= 1 && request.sequences >= 1);
  return Planner(needs, request).Plan();
}

namespace {

std::string DescribePositions(const MemoryPlan& plan) {
  if (plan.sequences == 1) return fmt::format("a context of {} tokens", plan.context);
  return fmt::format("{} sequences of up to {} tokens, {} in all", plan.sequences, plan.context,
                     plan.kv_positions);
}

}  // namespace

std::vector<std::string> Describe(const MemoryPlan& plan, const MemoryNeeds& needs) {
  std::vector<std::string> lines = {
      fmt::format("program       {} with its reserve", ToString(plan.program))};
  for (const auto& [name, bytes] : {std::pair{"connections", plan.serving.connections},
                                    {"answer rules", plan.serving.rules},
                                    {"peers", plan.serving.peers},
                                    {"requests", plan.serving.requests},
                                    {"words", plan.serving.words},
                                    {"cut prompts", plan.serving.cuts},
                                    {"draft model", plan.draft}}) {
    if (bytes > Bytes()) lines.push_back(fmt::format("{:<13} {}", name, ToString(bytes)));
  }
  lines.push_back(fmt::format("dense weights {}", ToString(plan.dense)));
  lines.push_back(
      fmt::format("KV cache      {} for {}", ToString(plan.kv_cache), DescribePositions(plan)));
  lines.push_back(
      fmt::format("workspace     {} for chunks of {}", ToString(plan.workspace), plan.chunk));
  if (plan.state > Bytes()) {
    lines.insert(lines.end() - 1,
                 fmt::format("state         {} of {} sequence{}, however long",
                             ToString(plan.state), plan.sequences, plan.sequences == 1 ? "" : "s"));
  }
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
