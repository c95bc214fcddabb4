// Who may use the model while it can be replaced by another: requests use it, or are parked in the
// order in which they came from the moment it is to go until the next one is in. A state machine
// without a thread: one thread replaces the model and calls Park, WaitUntilUnused and Reopen;
// opening and closing are its part (docs/design/reload.md). Thread-safe; calls nobody while it
// holds its lock.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <functional>
#include <optional>
#include <set>
#include <string_view>
#include <utility>

#include "base/mutex.h"
#include "base/status.h"

namespace troupe {

class ReloadGate;
struct ServedModel;

// Leave to use a model: while one lives, the model is not closed. Must not outlive the gate.
class ModelUse {
 public:
  ModelUse(ModelUse&& other) noexcept
      : gate_(std::exchange(other.gate_, nullptr)), served_(other.served_) {}
  ModelUse& operator=(ModelUse&&) = delete;
  ~ModelUse();

  ServedModel& served() const { return *served_; }

 private:
  friend class ReloadGate;
  ModelUse(ReloadGate& gate, ServedModel& served) : gate_(&gate), served_(&served) {}

  ReloadGate* gate_;  // null after a move
  ServedModel* served_;
};

class ReloadGate {
 public:
  enum class State {
    kServing,    // requests use the model
    kEmptying,   // those that use it go on; new ones are parked
    kEmpty,      // nobody uses it, and nobody can: it may be closed
    kReleasing,  // the next one is in, and parked requests go first
    kEnded,      // for good: new ones are refused
  };

  // A request: one of the two is called once, by Enter or later by the thread that replaces the
  // model; neither if it leaves while it is parked.
  struct Visit {
    std::function<void(ModelUse)> begin;
    std::function<void(const Status&)> refuse;
    // How many places it will take in the model's queue, counted only if it is parked; null: one.
    std::function<std::size_t()> places = {};
  };

  explicit ReloadGate(ServedModel& first) : served_(&first) {}
  ~ReloadGate();
  ReloadGate(const ReloadGate&) = delete;
  ReloadGate& operator=(const ReloadGate&) = delete;

  // By requests. `id` is NextId's, by which a client that leaves is found among the parked.
  std::uint64_t NextId();
  void Enter(std::uint64_t id, Visit visit);
  // Whether it was parked, or will not be.
  bool Leave(std::uint64_t id);
  bool IsParked(std::uint64_t id) const;
  // One that has waited for too long; whether it was parked still.
  bool Refuse(std::uint64_t id, const Status& why);

  // To look at the model, not to compute with it; absent while there is none.
  std::optional<ModelUse> Look();

  struct Limits {
    // Of requests that wait, and of those that waited until all of them are called: what both
    // models can take. A request that would need more is refused.
    std::size_t places = 64;
    double retry_seconds = 1;  // when that one may come again
  };
  // From now on requests are parked. In kServing.
  void Park(const Limits& limits);
  // The next model will be one with fewer places. No: those that wait need more, and nothing
  // changes.
  bool LimitTo(std::size_t places);
  // Whether nobody uses the model any more, within that time; then nobody can. In kEmptying.
  bool WaitUntilUnused(std::chrono::milliseconds longest);
  // Calls those that are parked, in their order, and those that come meanwhile behind them. In
  // kEmpty.
  void Reopen(ServedModel& next);
  // Refuses who is parked and who comes. Who uses the model goes on. In any state, once.
  void End(const Status& why);

  State state() const;
  bool has_model() const;
  std::size_t users() const;
  std::size_t parked() const;

 private:
  friend class ModelUse;
  struct Parked {
    std::uint64_t id;
    std::size_t places;
    Visit visit;
  };

  void EndUse();
  ModelUse NewUse() TROUPE_REQUIRES(mu_);
  std::deque<Parked>::const_iterator Find(std::uint64_t id) const TROUPE_REQUIRES(mu_);
  Visit Take(std::deque<Parked>::const_iterator parked) TROUPE_REQUIRES(mu_);
  std::optional<std::pair<Visit, ModelUse>> NextParked();

  mutable Mutex mu_;
  CondVar unused_;
  State state_ TROUPE_GUARDED_BY(mu_) = State::kServing;
  ServedModel* served_ TROUPE_GUARDED_BY(mu_);  // null: none may be used
  std::size_t users_ TROUPE_GUARDED_BY(mu_) = 0;
  std::uint64_t ids_ TROUPE_GUARDED_BY(mu_) = 0;
  std::deque<Parked> parked_ TROUPE_GUARDED_BY(mu_);
  std::size_t places_ TROUPE_GUARDED_BY(mu_) = 0;  // of those parked since Park, unless they left
  std::set<std::uint64_t> left_ TROUPE_GUARDED_BY(mu_);  // while others are parked, and not parked
  Limits limits_ TROUPE_GUARDED_BY(mu_);
  Status end_ TROUPE_GUARDED_BY(mu_);  // why it ended
};

std::string_view ToString(ReloadGate::State state);

}  // namespace troupe
