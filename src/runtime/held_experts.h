// Experts that stay in memory for everybody: whoever wants to compute with one finds it here, on
// any thread, and keeps it while it does. One thread at a time adds and removes. Where they lie and
// what is held is decided elsewhere.
#pragma once

#include <atomic>
#include <cstdint>
#include <optional>
#include <utility>
#include <vector>

#include "expert/expert_grid.h"
#include "expert/expert_id.h"
#include "model/weights.h"

namespace troupe {

class HeldExperts {
 public:
  // An expert in use: its weights stay where they are for as long as this lives.
  class Use {
   public:
    Use(Use&& other) noexcept
        : users_(std::exchange(other.users_, nullptr)), weights_(other.weights_) {}
    Use& operator=(Use&&) = delete;
    ~Use() {
      if (users_ != nullptr) users_->fetch_sub(1, std::memory_order_release);
    }

    const Mlp& weights() const { return *weights_; }

   private:
    friend class HeldExperts;
    Use(std::atomic<std::uint32_t>& users, const Mlp& weights)
        : users_(&users), weights_(&weights) {}

    std::atomic<std::uint32_t>* users_;
    const Mlp* weights_;
  };

  explicit HeldExperts(ExpertGrid grid) : grid_(grid), entries_(grid.Count()) {}

  // One that is not held, and that nobody uses any more.
  void Add(ExpertId id, const Mlp& weights);
  // Nobody finds it from now on. Its memory may be given to others once IsFree says so.
  void Remove(ExpertId id);
  bool IsFree(ExpertId id) const;

  // Any thread.
  std::optional<Use> Find(ExpertId id);
  bool Holds(ExpertId id) const;
  std::uint32_t count() const { return count_.load(std::memory_order_relaxed); }
  const ExpertGrid& grid() const { return grid_; }

 private:
  static constexpr std::uint32_t kHeld = 1u << 31;
  struct Entry {
    std::atomic<std::uint32_t> state = 0;  // kHeld, and how many use it
    Mlp weights;
  };

  const Entry& At(ExpertId id) const { return entries_[grid_.Index(id)]; }
  Entry& At(ExpertId id) { return entries_[grid_.Index(id)]; }

  ExpertGrid grid_;
  std::vector<Entry> entries_;
  std::atomic<std::uint32_t> count_ = 0;
};

}  // namespace troupe
