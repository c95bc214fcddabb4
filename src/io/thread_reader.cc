#include "io/thread_reader.h"

#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <deque>
#include <iterator>
#include <system_error>
#include <thread>
#include <utility>

#include "base/mutex.h"
#include "io/deadline.h"

namespace troupe {
namespace {

ReadAnswer ReadNow(const ReadRequest& request) {
  for (;;) {
    const ssize_t n = ::pread(request.fd, request.target.data(), request.target.size(),
                              static_cast<off_t>(request.offset));
    if (n >= 0) return AnswerTo(request, n);
    if (errno != EINTR) return AnswerTo(request, -std::int64_t{errno});
  }
}

class ThreadReader final : public AsyncReader {
 public:
  explicit ThreadReader(std::size_t depth) : depth_(depth) {}

  // Requests that no thread has taken up are dropped; their targets stay as they are.
  ~ThreadReader() override {
    {
      const MutexLock lock(mu_);
      stop_ = true;
    }
    request_there_.NotifyAll();
    for (std::thread& thread : threads_) thread.join();
  }

  Status StartThreads(std::size_t count) {
    threads_.reserve(count);
    try {
      while (threads_.size() < count) threads_.emplace_back([this] { Work(); });
    } catch (const std::system_error& e) {
      return Error(Code::kResourceExhausted, "no thread for reading: {}", e.what());
    }
    return OkStatus();
  }

  std::string_view name() const override { return "threads"; }
  std::size_t depth() const override { return depth_; }
  std::size_t under_way() const override { return under_way_; }

  void Submit(std::span<const ReadRequest> requests) override {
    TROUPE_CHECK(requests.size() <= depth_ - under_way_);
    under_way_ += requests.size();
    {
      const MutexLock lock(mu_);
      waiting_.insert(waiting_.end(), requests.begin(), requests.end());
    }
    for (std::size_t i = 0; i < requests.size(); ++i) request_there_.NotifyOne();
  }

  void Collect(std::vector<ReadAnswer>& answers, std::optional<Nanos> wait) override {
    if (under_way_ == 0) return;
    const Deadline deadline(clock_, wait);
    const MutexLock lock(mu_);
    for (Nanos left = deadline.Left(); done_.empty() && left > 0; left = deadline.Left()) {
      answer_there_.WaitFor(mu_, left);
    }
    under_way_ -= done_.size();
    std::move(done_.begin(), done_.end(), std::back_inserter(answers));
    done_.clear();
  }

 private:
  void Work() {
    for (;;) {
      ReadRequest request;
      {
        const MutexLock lock(mu_);
        while (waiting_.empty() && !stop_) request_there_.Wait(mu_);
        if (stop_) return;
        request = waiting_.front();
        waiting_.pop_front();
      }
      ReadAnswer answer = ReadNow(request);
      {
        const MutexLock lock(mu_);
        done_.push_back(std::move(answer));
      }
      answer_there_.NotifyOne();
    }
  }

  const std::size_t depth_;
  const MonotonicClock clock_;
  std::size_t under_way_ = 0;  // the one calling thread's own count
  Mutex mu_;
  CondVar request_there_, answer_there_;
  std::deque<ReadRequest> waiting_ TROUPE_GUARDED_BY(mu_);
  std::vector<ReadAnswer> done_ TROUPE_GUARDED_BY(mu_);
  bool stop_ TROUPE_GUARDED_BY(mu_) = false;
  std::vector<std::thread> threads_;
};

}  // namespace

Result<std::unique_ptr<AsyncReader>> MakeThreadReader(std::size_t depth, std::size_t threads) {
  TROUPE_CHECK(depth > 0 && threads > 0);
  auto reader = std::make_unique<ThreadReader>(depth);
  TROUPE_RETURN_IF_ERROR(reader->StartThreads(std::min(depth, threads)));
  return std::unique_ptr<AsyncReader>(std::move(reader));
}

}  // namespace troupe
