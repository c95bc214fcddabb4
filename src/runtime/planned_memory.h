// What the plans of one process have promised together. A model's keys, values and slots become
// resident only when they are first used, so that a plan made after another cannot tell from what
// the process holds what it may come to hold. Thread-safe.
#pragma once

#include <functional>
#include <utility>

#include "base/bytes.h"
#include "base/mutex.h"
#include "base/status.h"

namespace troupe {

class PlannedMemory {
 public:
  // A plan's part of the sum, which is given back when it is destroyed.
  class Share {
   public:
    Share() = default;
    Share(Share&& other) noexcept
        : memory_(std::exchange(other.memory_, nullptr)), size_(other.size_) {}
    Share& operator=(Share&& other) noexcept {
      std::swap(memory_, other.memory_);
      std::swap(size_, other.size_);
      return *this;
    }
    ~Share() {
      if (memory_ != nullptr) memory_->GiveBack(size_);
    }

    Bytes size() const { return size_; }

   private:
    friend class PlannedMemory;
    Share(PlannedMemory* memory, Bytes size) : memory_(memory), size_(size) {}

    PlannedMemory* memory_ = nullptr;
    Bytes size_;
  };

  static PlannedMemory& OfProcess();

  // Makes one plan. `held` says what the process holds now; the plan is told what it holds or may
  // come to hold by the plans before, and returns what the process then comes to altogether. Other
  // plans wait meanwhile. An error of the plan is returned, and nothing is counted.
  Result<Share> Add(const std::function<Bytes()>& held,
                    const std::function<Result<Bytes>(Bytes taken)>& plan);

  // Makes a plan for the time after every share of now has been given back, and counts nothing: it
  // is told what the process held before the first of them was taken.
  Status Look(const std::function<Bytes()>& held,
              const std::function<Result<Bytes>(Bytes taken)>& plan);

 private:
  void GiveBack(Bytes size);

  Mutex mu_;
  Bytes before_ TROUPE_GUARDED_BY(mu_);  // held when the first of the shares was taken
  Bytes planned_ TROUPE_GUARDED_BY(mu_);
  std::size_t shares_ TROUPE_GUARDED_BY(mu_) = 0;
};

}  // namespace troupe
