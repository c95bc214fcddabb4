// Has the cache of experts follow the memory of this machine while an end serves: looks at what is
// free, asks SlotLimit how many slots may be used, and has the engine take the steps between its
// passes. Looked at by one thread.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>

#include "base/clock.h"
#include "expert/flow/slot_limit.h"
#include "machine/process_memory.h"
#include "runtime/engine.h"
#include "runtime/slot_use.h"

namespace troupe {

struct MemoryWatchOptions {
  bool named = false;         // the user has said how much memory or how many slots
  Nanos every = 500'000'000;  // sooner while memory falls
  Nanos lasting = SlotLimit::Options().lasting;
  bool explain = false;   // say at once when the cache will change
  std::string root = {};  // of /proc and /sys; a test's
  std::function<Bytes()> held = ResidentMemory;
};

struct MemoryState {
  std::uint32_t wanted = 0;  // slots, as of the last look
  SlotUse use;               // as of the last step
  std::int64_t spare_bytes = 0;
  MemoryMarks marks;
};

class MemoryWatch {
 public:
  // Has the engine's thread do something between two passes.
  using Between = std::function<void(std::function<void()> errand)>;
  using Say = std::function<void(const std::string& line)>;

  // Null where nothing can be given back: all experts are in memory. The engine must outlive what
  // it is asked to do. `say` may be null.
  static std::unique_ptr<MemoryWatch> Open(Engine& engine, Between between,
                                           MemoryWatchOptions options, Say say);

  // Often: what is due is done.
  void OnTime(Nanos now);
  // Until the next look is due.
  Nanos DueIn(Nanos now) const { return look_at_ - now; }
  MemoryState State() const;

 private:
  MemoryWatch(Engine& engine, Between between, MemoryWatchOptions options, Say say,
              SlotLimit::Options limit);
  void Look(Nanos now);
  void Step();
  void Tell(const SlotLimit::Reading& reading);

  struct Steps;

  Engine& engine_;
  const Between between_;
  const MemoryWatchOptions options_;
  const Say say_;
  const MemoryMarks marks_;
  SlotLimit limit_;
  const std::shared_ptr<Steps> steps_;  // with the engine's thread
  Nanos look_at_ = 0, looked_at_ = 0;
  std::int64_t spare_ = 0;
  std::uint32_t told_ = 0;  // slots
};

// By what was free when the budget was chosen.
MemoryMarks MarksFor(Bytes free, bool named);
// "experts are given back when …".
std::string Describe(const MemoryMarks& marks, bool named);

}  // namespace troupe
