// Which answer of an end the model is asked for next: as many at a time as it has sequences, one of
// each end in turn, so that a busy end slows down itself and not the others. Thread-safe; calls
// nobody while it holds its lock.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <utility>

#include "base/fair_queue.h"
#include "base/mutex.h"

namespace troupe {

class EndTurns {
 public:
  // Leave to ask the model; the next one begins when it goes. Must not outlive the turns.
  class Turn {
   public:
    Turn(Turn&& other) noexcept : turns_(std::exchange(other.turns_, nullptr)) {}
    Turn& operator=(Turn&&) = delete;
    ~Turn() {
      if (turns_ != nullptr) turns_->End();
    }

   private:
    friend class EndTurns;
    explicit Turn(EndTurns& turns) : turns_(&turns) {}
    EndTurns* turns_;  // null after a move
  };
  using Begin = std::function<void(Turn)>;

  // Calls `begin` at once, or when a turn ends, on that thread; false: as many of this end wait as
  // may, and nothing will be called. `together`: turns at a time.
  bool Enter(std::uint64_t end, std::size_t together, Begin begin);

  std::size_t waiting() const;

 private:
  static constexpr std::size_t kMostOfEnd = 64;
  struct Waiting {
    Begin begin;
    std::size_t size() const { return 1; }
  };

  void End();

  mutable Mutex mu_;
  FairQueue<Waiting> queue_ TROUPE_GUARDED_BY(mu_){kMostOfEnd, 16 * kMostOfEnd};
  std::size_t under_way_ TROUPE_GUARDED_BY(mu_) = 0;
};

}  // namespace troupe
