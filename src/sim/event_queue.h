// The simulator's clock and agenda: events by time, those of one time in the order in which they
// were put in, so that a run depends on nothing but its input. A heap of four children a node:
// shallower than two, and the children share cache lines.
#pragma once

#include <cstdint>
#include <utility>
#include <vector>

#include "base/check.h"

namespace troupe {

struct SimEvent {
  double time = 0;
  std::uint64_t order = 0;
  std::uint32_t kind = 0;
  std::uint32_t subject = 0;
  std::uint64_t detail = 0;
};

class EventQueue {
 public:
  double now() const { return now_; }
  bool empty() const { return heap_.empty(); }
  std::size_t size() const { return heap_.size(); }
  std::uint64_t handled() const { return handled_; }

  void Add(double time, std::uint32_t kind, std::uint32_t subject, std::uint64_t detail = 0) {
    TROUPE_DCHECK(time >= now_);
    heap_.push_back({time, next_order_++, kind, subject, detail});
    SiftUp(heap_.size() - 1);
  }

  // The next event; time goes on to it.
  SimEvent Take() {
    const SimEvent event = heap_.front();
    const SimEvent last = heap_.back();
    heap_.pop_back();
    if (!heap_.empty()) SiftDown(last);
    now_ = event.time;
    ++handled_;
    return event;
  }

 private:
  static bool Before(const SimEvent& a, const SimEvent& b) {
    return a.time != b.time ? a.time < b.time : a.order < b.order;
  }
  void SiftUp(std::size_t at) {
    const SimEvent event = heap_[at];
    while (at > 0) {
      const std::size_t parent = (at - 1) / 4;
      if (!Before(event, heap_[parent])) break;
      heap_[at] = heap_[parent];
      at = parent;
    }
    heap_[at] = event;
  }
  void SiftDown(const SimEvent& event) {
    std::size_t at = 0;
    for (;;) {
      const std::size_t first = 4 * at + 1;
      if (first >= heap_.size()) break;
      const std::size_t end = first + 4 < heap_.size() ? first + 4 : heap_.size();
      std::size_t least = first;
      for (std::size_t child = first + 1; child < end; ++child) {
        if (Before(heap_[child], heap_[least])) least = child;
      }
      if (!Before(heap_[least], event)) break;
      heap_[at] = heap_[least];
      at = least;
    }
    heap_[at] = event;
  }

  std::vector<SimEvent> heap_;
  double now_ = 0;
  std::uint64_t next_order_ = 0;
  std::uint64_t handled_ = 0;
};

}  // namespace troupe
