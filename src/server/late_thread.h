// A thread that begins with the first work for it; the system may give none, and who has the work
// then does without. What it does, and how it learns that it is to end, is its owner's part.
#pragma once

#include <functional>
#include <system_error>
#include <thread>
#include <utility>

namespace troupe {

class LateThread {
 public:
  LateThread() = default;
  ~LateThread() { Join(); }
  LateThread(const LateThread&) = delete;
  LateThread& operator=(const LateThread&) = delete;

  // Whether there is one, from now on at the latest, that does `main`. One call at a time, and none
  // from the moment that it is told to end.
  bool Begin(std::function<void()> main) {
    if (thread_.joinable()) return true;
    try {
      thread_ = std::thread(std::move(main));
    } catch (const std::system_error&) {
      return false;
    }
    return true;
  }

  // Waits for its end, of which it was told. From another thread, any number of times.
  void Join() {
    if (thread_.joinable()) thread_.join();
  }

 private:
  std::thread thread_;
};

}  // namespace troupe
