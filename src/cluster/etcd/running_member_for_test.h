// A Membership on a real store and the real clock, which a test can ask and wait for.
#pragma once

#include <algorithm>
#include <chrono>
#include <condition_variable>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <thread>
#include <utility>

#include "base/clock.h"
#include "cluster/etcd/etcd_store.h"
#include "cluster/members/membership.h"

namespace troupe {

class RunningMember {
 public:
  RunningMember(const EtcdOptions& etcd, MembershipOptions options)
      : store_(EtcdStore::Open(etcd, [this](const KvEvent& event) { Told(event); }).value()),
        member_(std::make_unique<Membership>(std::move(options), *store_, clock_.Now())) {
    ticks_ = std::thread([this] { Main(); });
  }
  // As a process that is killed: gives nothing back.
  ~RunningMember() {
    {
      const std::lock_guard lock(mu_);
      ends_ = true;
      changed_.notify_all();
    }
    ticks_.join();
    store_.reset();
  }

  template <typename What>
  auto Get(What what) {
    const std::lock_guard lock(mu_);
    return what(*member_);
  }
  // Whether that came about.
  bool WaitUntil(const std::function<bool(Membership&)>& holds, double seconds = 20) {
    std::unique_lock lock(mu_);
    return changed_.wait_for(lock, std::chrono::duration<double>(seconds),
                             [&] { return holds(*member_); });
  }
  // A process that is stopped: hears nothing and does nothing.
  void set_stopped(bool stopped) {
    const std::lock_guard lock(mu_);
    stopped_ = stopped;
    changed_.notify_all();
  }
  // What becomes of a plan.
  Result<PlanStamp> Write(Json plan) {
    std::unique_lock lock(mu_);
    TROUPE_RETURN_IF_ERROR(member_->WritePlan(std::move(plan), clock_.Now()));
    std::optional<Result<PlanStamp>> written;
    changed_.wait_for(lock, std::chrono::seconds(20), [&] {
      written = member_->TakeNews().written;
      return written.has_value();
    });
    if (!written) return Error(Code::kInternal, "no outcome");
    return *written;
  }

 private:
  void Told(const KvEvent& event) {
    std::unique_lock lock(mu_);
    changed_.wait(lock, [&] { return !stopped_ || ends_; });
    member_->Told(event, clock_.Now());
    changed_.notify_all();
  }
  void Main() {
    std::unique_lock lock(mu_);
    while (!ends_) {
      const Nanos wait = member_->next_tick() - clock_.Now();
      if (wait <= 0 && !stopped_) {
        member_->Tick(clock_.Now());
        changed_.notify_all();
      } else {
        // Events move the next tick, and wake this.
        changed_.wait_for(lock, std::chrono::nanoseconds(
                                    stopped_ ? kLongest : std::clamp(wait, Nanos{1}, kLongest)));
      }
    }
  }

  static constexpr Nanos kLongest = 100'000'000;

  const MonotonicClock clock_;
  std::mutex mu_;
  std::condition_variable changed_;
  bool ends_ = false, stopped_ = false;
  std::unique_ptr<EtcdStore> store_;
  std::unique_ptr<Membership> member_;  // told from the first tick on
  std::thread ticks_;
};

}  // namespace troupe
