#include "server/reload_gate.h"

#include <algorithm>
#include <exception>

#include "base/check.h"

namespace troupe {

ModelUse::~ModelUse() {
  if (gate_ != nullptr) gate_->EndUse();
}

ReloadGate::~ReloadGate() {
  const MutexLock lock(mu_);
  TROUPE_CHECK(users_ == 0);
}

ModelUse ReloadGate::NewUse() {
  ++users_;
  return ModelUse(*this, *served_);
}

void ReloadGate::EndUse() {
  const MutexLock lock(mu_);
  if (--users_ == 0) unused_.NotifyAll();
}

std::uint64_t ReloadGate::NextId() {
  const MutexLock lock(mu_);
  return ++ids_;
}

void ReloadGate::Enter(std::uint64_t id, Visit visit) {
  std::size_t places =
      0;  // not counted yet: that is done without the lock, and only if it is parked
  for (;;) {
    std::optional<ModelUse> use;
    Status refusal;
    {
      const MutexLock lock(mu_);
      if (state_ == State::kServing) {
        use.emplace(NewUse());
      } else if (state_ == State::kEnded) {
        refusal = end_;
      } else if (left_.erase(id) > 0) {
        return;  // it left before it came here
      } else if (places > limits_.places - std::min(places_, limits_.places)) {
        refusal = Error(Code::kUnavailable,
                        "{} requests wait for a model that is being loaded, no room for {} more",
                        parked_.size(), places)
                      .WithRetryAfter(limits_.retry_seconds);
      } else if (places > 0) {
        places_ += places;
        parked_.push_back({id, places, std::move(visit)});
        return;
      }
    }
    if (use) return visit.begin(*std::move(use));
    if (!refusal.ok()) return visit.refuse(refusal);
    places = visit.places ? std::max<std::size_t>(visit.places(), 1) : 1;
  }
}

bool ReloadGate::Leave(std::uint64_t id) {
  std::optional<Visit> gone;  // destroyed without the lock: it holds what others gave
  const MutexLock lock(mu_);
  const auto found = Find(id);
  if (found == parked_.end()) {
    if (state_ == State::kServing) return false;
    return left_.insert(id).second;
  }
  gone.emplace(Take(found));
  return true;
}

bool ReloadGate::IsParked(std::uint64_t id) const {
  const MutexLock lock(mu_);
  return Find(id) != parked_.end();
}

bool ReloadGate::Refuse(std::uint64_t id, const Status& why) {
  std::optional<Visit> late;
  {
    const MutexLock lock(mu_);
    const auto found = Find(id);
    if (found == parked_.end()) return false;
    late.emplace(Take(found));
  }
  late->refuse(why);
  return true;
}

std::deque<ReloadGate::Parked>::const_iterator ReloadGate::Find(std::uint64_t id) const {
  return std::ranges::find_if(parked_, [id](const Parked& parked) { return parked.id == id; });
}

// With the places that it would have had.
ReloadGate::Visit ReloadGate::Take(std::deque<Parked>::const_iterator parked) {
  Visit visit = parked->visit;
  places_ -= parked->places;
  parked_.erase(parked);
  return visit;
}

std::optional<ModelUse> ReloadGate::Look() {
  const MutexLock lock(mu_);
  if (served_ == nullptr) return std::nullopt;
  return NewUse();
}

void ReloadGate::Park(const Limits& limits) {
  const MutexLock lock(mu_);
  TROUPE_CHECK(state_ == State::kServing);
  state_ = State::kEmptying;
  limits_ = limits;
  places_ = 0;
}

bool ReloadGate::LimitTo(std::size_t places) {
  const MutexLock lock(mu_);
  if (places_ > places) return false;
  limits_.places = std::min(limits_.places, places);
  return true;
}

bool ReloadGate::WaitUntilUnused(std::chrono::milliseconds longest) {
  const auto until = std::chrono::steady_clock::now() + longest;
  const MutexLock lock(mu_);
  TROUPE_CHECK(state_ == State::kEmptying);
  while (users_ > 0) {
    const std::chrono::nanoseconds left = until - std::chrono::steady_clock::now();
    if (left.count() <= 0) return false;
    unused_.WaitFor(mu_, left.count());
  }
  state_ = State::kEmpty;
  served_ = nullptr;
  return true;
}

void ReloadGate::Reopen(ServedModel& next) {
  {
    const MutexLock lock(mu_);
    TROUPE_CHECK(state_ == State::kEmpty);
    state_ = State::kReleasing;
    served_ = &next;
  }
  while (auto parked = NextParked()) {
    try {
      parked->first.begin(std::move(parked->second));
    } catch (const std::exception&) {
      // Memory that there is not, say. The reply has been let go of, and answers with 500.
    }
  }
}

std::optional<std::pair<ReloadGate::Visit, ModelUse>> ReloadGate::NextParked() {
  const MutexLock lock(mu_);
  if (parked_.empty()) {
    state_ = State::kServing;
    left_.clear();
    return std::nullopt;
  }
  Visit visit = std::move(parked_.front().visit);
  parked_.pop_front();
  return std::pair(std::move(visit), NewUse());
}

void ReloadGate::End(const Status& why) {
  std::deque<Parked> refused;
  {
    const MutexLock lock(mu_);
    TROUPE_CHECK(state_ != State::kEnded);
    state_ = State::kEnded;
    end_ = why;
    refused.swap(parked_);
  }
  for (const Parked& parked : refused) parked.visit.refuse(why);
}

ReloadGate::State ReloadGate::state() const {
  const MutexLock lock(mu_);
  return state_;
}

bool ReloadGate::has_model() const {
  const MutexLock lock(mu_);
  return served_ != nullptr;
}

std::size_t ReloadGate::users() const {
  const MutexLock lock(mu_);
  return users_;
}

std::size_t ReloadGate::parked() const {
  const MutexLock lock(mu_);
  return parked_.size();
}

std::string_view ToString(ReloadGate::State state) {
  switch (state) {
    case ReloadGate::State::kServing:
      return "serving";
    case ReloadGate::State::kEmptying:
      return "emptying";
    case ReloadGate::State::kEmpty:
      return "empty";
    case ReloadGate::State::kReleasing:
      return "releasing";
    case ReloadGate::State::kEnded:
      return "ended";
  }
  return "ended";
}

}  // namespace troupe
