#include "sim/replay/replay_link.h"

#include <algorithm>

namespace troupe {

void ReplayLink::Begin(const Load& load, double now, double latency) {
  current_ = load.id;
  current_end_ = now + latency + load.seconds;
  busy_ += latency + load.seconds;
}

void ReplayLink::Request(ExpertId id, double seconds, bool demand, double now) {
  const Load load{.id = id, .seconds = seconds, .number = requests_++};
  if (!current_) return Begin(load, now, latency_);
  (demand ? demands_ : prefetches_).push_back(load);
}

void ReplayLink::Promote(ExpertId id) {
  const auto load = std::ranges::find(prefetches_, id, &Load::id);
  if (load == prefetches_.end()) return;
  demands_.insert(std::ranges::upper_bound(demands_, load->number, {}, &Load::number), *load);
  prefetches_.erase(load);
}

bool ReplayLink::Cancel(ExpertId id) {
  const auto load = std::ranges::find(prefetches_, id, &Load::id);
  if (load == prefetches_.end()) return false;
  prefetches_.erase(load);
  return true;
}

double ReplayLink::SecondsAheadOfDemand(double now) const {
  double seconds = current_ ? std::max(0.0, current_end_ - now) : 0;
  for (const Load& load : demands_) seconds += load.seconds;
  return seconds;
}

double ReplayLink::SecondsLeft(ExpertId id, double now) const {
  if (current_ == id) return std::max(0.0, current_end_ - now);
  for (const std::deque<Load>* queue : {&demands_, &prefetches_}) {
    const auto load = std::ranges::find(*queue, id, &Load::id);
    if (load != queue->end()) return load->seconds;
  }
  return 0;
}

void ReplayLink::AdvanceTo(double now, std::vector<ExpertId>& ended) {
  while (current_ && current_end_ <= now) {
    ended.push_back(*current_);
    current_.reset();
    std::deque<Load>& queue = demands_.empty() ? prefetches_ : demands_;
    if (queue.empty()) return;
    Begin(queue.front(), current_end_, 0);
    queue.pop_front();
  }
}

}  // namespace troupe
