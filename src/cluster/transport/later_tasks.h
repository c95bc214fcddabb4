// Tasks for later, by time. Pure: time comes in as an argument, and one thread has it.
#pragma once

#include <functional>
#include <map>
#include <optional>
#include <utility>

#include "base/clock.h"

namespace troupe {

class LaterTasks {
 public:
  void Add(Nanos when, std::function<void()> task) { tasks_.emplace(when, std::move(task)); }

  // When RunDue has something to do; nothing: never.
  std::optional<Nanos> next() const {
    if (tasks_.empty()) return std::nullopt;
    return tasks_.begin()->first;
  }

  // In the order of their times. Tasks may add others.
  void RunDue(Nanos now) {
    while (!tasks_.empty() && tasks_.begin()->first <= now) {
      tasks_.extract(tasks_.begin()).mapped()();
    }
  }

  void Clear() { tasks_.clear(); }

 private:
  std::multimap<Nanos, std::function<void()>> tasks_;
};

}  // namespace troupe
