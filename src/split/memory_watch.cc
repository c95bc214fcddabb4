#include "split/memory_watch.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "base/mutex.h"
#include "expert/flow/memory_plan.h"
#include "machine/machine_memory.h"

namespace troupe {
namespace {

// A token's experts of one layer are in memory together.
std::uint32_t LeastOfPasses(const Engine& engine) {
  return std::min(std::max(engine.config().moe.routing.top_k, kLeastSlots),
                  engine.plan().memory.slots);
}

}  // namespace

struct MemoryWatch::Steps {
  Mutex mu;
  SlotUse use TROUPE_GUARDED_BY(mu);
  bool under_way TROUPE_GUARDED_BY(mu) = false;
};

MemoryMarks MarksFor(Bytes free, bool named) {
  const Bytes for_others = ReserveForOthers({.available = free, .limit = ""});
  return named ? MemoryMarks::OfNamed(for_others) : MemoryMarks::OfChosen(for_others);
}

std::string Describe(const MemoryMarks& marks, bool named) {
  return fmt::format("experts are given back when {} less than {}, and taken again above {}",
                     named ? "there is" : "the budget leaves others", ToString(marks.low),
                     ToString(marks.enough));
}

std::unique_ptr<MemoryWatch> MemoryWatch::Open(Engine& engine, Between between,
                                               MemoryWatchOptions options, Say say) {
  const MemoryPlan& plan = engine.plan().memory;
  const Result<MachineMemory> memory = ReadMachineMemory(options.root);
  if (plan.all_resident || plan.slots == 0 || !memory.ok()) return nullptr;
  // What the plan was made by: what the process has taken since then was free.
  const SlotLimit::Options limit = {
      .most = plan.slots,
      .least = LeastOfPasses(engine),
      .slot = engine.plan().needs.slot,
      .planned = plan.total(),
      .marks = MarksFor(memory->available + options.held(), options.named),
      .named = options.named,
      .lasting = options.lasting};
  if (options.explain && say) say(Describe(limit.marks, limit.named));
  return std::unique_ptr<MemoryWatch>(
      new MemoryWatch(engine, std::move(between), std::move(options), std::move(say), limit));
}

MemoryWatch::MemoryWatch(Engine& engine, Between between, MemoryWatchOptions options, Say say,
                         SlotLimit::Options limit)
    : engine_(engine),
      between_(std::move(between)),
      options_(std::move(options)),
      say_(std::move(say)),
      marks_(limit.marks),
      limit_(limit),
      steps_(std::make_shared<Steps>()),
      told_(limit.most) {
  const MutexLock lock(steps_->mu);
  steps_->use = {.most = limit.most, .slots = limit.most, .with_memory = limit.most};
  steps_->use.slot = limit.slot;
}

void MemoryWatch::OnTime(Nanos now) {
  if (now >= look_at_) {
    look_at_ = now + options_.every;
    Look(now);
  }
  Step();
}

void MemoryWatch::Look(Nanos now) {
  const Result<MachineMemory> memory = ReadMachineMemory(options_.root);
  const SlotUse use = State().use;
  if (!memory.ok() || use.refused) return;  // nothing is known, or nothing would help
  const SlotLimit::Reading reading = {
      .free = memory->available, .held = options_.held(), .with_memory = use.with_memory};
  limit_.Look(reading, now);
  const std::int64_t spare = limit_.Spare(reading);
  if (looked_at_ > 0) {
    const auto low = static_cast<std::int64_t>(marks_.low.count());
    look_at_ = now + LookAgainIn(spare_ - spare, now - looked_at_, spare - low, options_.every);
  }
  looked_at_ = now;
  spare_ = spare;
  Tell(reading);
}

// One at a time: between passes there is time for one.
void MemoryWatch::Step() {
  const std::uint32_t slots = limit_.slots();
  {
    const MutexLock lock(steps_->mu);
    const SlotUse use = steps_->use;
    const bool is_done = use.slots == slots && (slots == use.most || use.with_memory <= slots);
    if (steps_->under_way || use.refused || is_done) return;
    steps_->under_way = true;
  }
  between_([steps = steps_, engine = &engine_, slots] {
    const SlotUse use = engine->UseExpertSlots(slots);
    const MutexLock lock(steps->mu);
    steps->use = use;
    steps->under_way = false;
  });
}

void MemoryWatch::Tell(const SlotLimit::Reading& reading) {
  const std::uint32_t slots = limit_.slots();
  if (!say_ || slots == told_) return;
  const std::uint32_t most = State().use.most;
  if (slots < told_) {
    say_(fmt::format("memory is short ({} free): this device keeps {} experts of {}, {} fewer",
                     ToString(reading.free), slots, most, told_ - slots));
  } else {
    say_(fmt::format("memory is there again ({} free): this device may keep {} experts of {}",
                     ToString(reading.free), slots, most));
  }
  told_ = slots;
}

MemoryState MemoryWatch::State() const {
  const MutexLock lock(steps_->mu);
  return {.wanted = limit_.slots(), .use = steps_->use, .spare_bytes = spare_, .marks = marks_};
}

}  // namespace troupe
