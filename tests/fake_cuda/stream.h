// A queue of work that is done in order on a thread of its own, and marks in it that others wait
// for: a stream, and what is behind an event.
#pragma once

#include <condition_variable>
#include <deque>
#include <functional>
#include <memory>
#include <mutex>
#include <thread>

namespace troupe {

class FakeMark {
 public:
  void Reach();
  bool IsReached() const;
  void Wait() const;

 private:
  mutable std::mutex mu_;
  mutable std::condition_variable reached_;
  bool is_reached_ = false;
};
using FakeMarkPtr = std::shared_ptr<FakeMark>;

class FakeStream {
 public:
  FakeStream();
  ~FakeStream();  // after its work
  FakeStream(const FakeStream&) = delete;
  FakeStream& operator=(const FakeStream&) = delete;

  void Add(std::function<void()> work);
  void Synchronize();

 private:
  void Run();

  std::mutex mu_;
  std::condition_variable added_;
  std::deque<std::function<void()>> work_;
  bool stopping_ = false;
  std::thread thread_;  // the last member: it uses the others
};

}  // namespace troupe
