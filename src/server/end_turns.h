// Which answer of an end the model is asked for next: as many at a time as it has sequences. A turn
// that becomes free goes to the end that has the fewest, and among such ends to each in turn, so
// that a busy end slows down itself and not the others, however long its answers are. Where turns
// are held for very long, an end has no more than its share of them, and others find some at once.
// Thread-safe; calls nobody while it holds its lock.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <limits>
#include <map>
#include <optional>
#include <utility>
#include <vector>

#include "base/fair_queue.h"
#include "base/mutex.h"

namespace troupe {

class EndTurns {
 public:
  // Leave to ask the model; the next one begins when it goes. Must not outlive the turns.
  class Turn {
   public:
    Turn(Turn&& other) noexcept
        : turns_(std::exchange(other.turns_, nullptr)), end_(other.end_), size_(other.size_) {}
    Turn& operator=(Turn&&) = delete;
    ~Turn() {
      if (turns_ != nullptr) turns_->End(end_, size_);
    }

   private:
    friend class EndTurns;
    Turn(EndTurns& turns, std::uint64_t end, std::size_t size)
        : turns_(&turns), end_(end), size_(size) {}
    EndTurns* turns_;  // null after a move
    std::uint64_t end_;
    std::size_t size_;
  };
  using Begin = std::function<void(Turn)>;

  // Of one end at a time: turns, and what they take of something all have together, in any unit.
  // One turn it may always have.
  struct Share {
    static constexpr std::size_t kAll = std::numeric_limits<std::size_t>::max();
    std::size_t turns = kAll;
    std::size_t sizes = kAll;
    std::size_t size = 0;       // of this turn
    std::size_t tokens = 0;     // that its answer has to read
    const void* who = nullptr;  // by which it may leave; null: it stays until it has its turn
  };

  // Those that wait and would have a turn before some answer of some end.
  struct Ahead {
    std::size_t answers = 0;
    std::size_t tokens = 0;  // that they have to read
  };

  // Calls `begin` at once, or when a turn ends, on that thread; false: as many of this end wait as
  // may, and nothing will be called. `together`: turns at a time.
  bool Enter(std::uint64_t end, std::size_t together, Begin begin) {
    return Enter(end, together, Share(), std::move(begin));
  }
  bool Enter(std::uint64_t end, std::size_t together, const Share& share, Begin begin);

  // Who waits does not any more, and will not be called. Who has a turn keeps it.
  void Leave(std::uint64_t end, const void* who);

  // Sums since the beginning.
  struct Counters {
    std::uint64_t at_once = 0, later = 0;  // turns, by when they came
    std::uint64_t to_fewer = 0;  // of the later ones: to an end with fewer than another that waited
  };

  // Before that one who waits, or before a new one if it does not.
  Ahead Before(std::uint64_t end, const void* who = nullptr) const;
  Counters counters() const;
  std::size_t waiting() const;
  std::size_t ends() const;  // that are remembered: those that wait

 private:
  static constexpr std::size_t kMostOfEnd = 64;
  struct Waiting {
    Begin begin;
    Share share;
    std::uint64_t end = 0;
    std::size_t size() const { return 1; }
  };
  struct Held {
    std::size_t turns = 0, sizes = 0;
  };

  using HeldBy = std::map<std::uint64_t, Held>;

  static std::size_t TurnsOf(const HeldBy& all, std::uint64_t end);
  static bool May(const HeldBy& all, std::uint64_t end, const Share& share);
  static Ahead BeforeOf(const FairQueue<Waiting>& queue, const HeldBy& all, std::uint64_t end,
                        const void* who);
  static std::optional<Waiting> NextOf(FairQueue<Waiting>& queue, const HeldBy& all,
                                       Counters& counters);
  static void ForgetIdle(FairQueue<Waiting>& queue, std::uint64_t end);
  void Hold(std::uint64_t end, std::size_t size) TROUPE_REQUIRES(mu_);
  void End(std::uint64_t end, std::size_t size);

  mutable Mutex mu_;
  FairQueue<Waiting> queue_ TROUPE_GUARDED_BY(mu_){kMostOfEnd, 16 * kMostOfEnd};
  HeldBy held_ TROUPE_GUARDED_BY(mu_);  // by ends that have a turn
  Counters counters_ TROUPE_GUARDED_BY(mu_);
  std::size_t under_way_ TROUPE_GUARDED_BY(mu_) = 0;
  std::size_t together_ TROUPE_GUARDED_BY(mu_) = 0;  // as it was said last
};

}  // namespace troupe
