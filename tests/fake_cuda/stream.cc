#include "fake_cuda/stream.h"

namespace troupe {

void FakeMark::Reach() {
  const std::lock_guard lock(mu_);
  is_reached_ = true;
  reached_.notify_all();
}

bool FakeMark::IsReached() const {
  const std::lock_guard lock(mu_);
  return is_reached_;
}

void FakeMark::Wait() const {
  std::unique_lock lock(mu_);
  reached_.wait(lock, [this] { return is_reached_; });
}

FakeStream::FakeStream() : thread_([this] { Run(); }) {}

FakeStream::~FakeStream() {
  {
    const std::lock_guard lock(mu_);
    stopping_ = true;
    added_.notify_one();
  }
  thread_.join();
}

void FakeStream::Add(std::function<void()> work) {
  const std::lock_guard lock(mu_);
  work_.push_back(std::move(work));
  added_.notify_one();
}

void FakeStream::Synchronize() {
  const auto mark = std::make_shared<FakeMark>();
  Add([mark] { mark->Reach(); });
  mark->Wait();
}

void FakeStream::Run() {
  for (;;) {
    std::function<void()> work;
    {
      std::unique_lock lock(mu_);
      added_.wait(lock, [this] { return stopping_ || !work_.empty(); });
      if (work_.empty()) return;
      work = std::move(work_.front());
      work_.pop_front();
    }
    work();
  }
}

}  // namespace troupe
