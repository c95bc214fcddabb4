#include "io/throttled_reader.h"

#include <algorithm>
#include <cmath>
#include <deque>
#include <thread>
#include <utility>

#include "io/deadline.h"

namespace troupe {
namespace {

Nanos ToNanos(double seconds) {
  constexpr double kHundredYears = 3.2e9;
  return std::llround(std::min(seconds, kHundredYears) * 1e9);
}

class ThrottledReader final : public AsyncReader {
 public:
  ThrottledReader(std::unique_ptr<AsyncReader> behind, const LinkSpeed& link, const Clock& clock)
      : behind_(std::move(behind)),
        link_(link),
        clock_(clock),
        time_passes_(dynamic_cast<const MonotonicClock*>(&clock) != nullptr),
        name_(fmt::format("{} behind {}", behind_->name(), ToString(link))) {}

  std::string_view name() const override { return name_; }
  std::size_t depth() const override { return behind_->depth(); }
  std::size_t under_way() const override { return passing_.size(); }
  bool RegisterMemory(std::span<std::byte> memory) override {
    return behind_->RegisterMemory(memory);
  }
  bool ForgetMemory(std::span<std::byte> memory) override { return behind_->ForgetMemory(memory); }

  // The link is a queue: a request's bytes pass after those of all earlier ones. Latencies overlap,
  // as on a real link.
  void Submit(std::span<const ReadRequest> requests) override {
    TROUPE_CHECK(requests.size() <= depth() - under_way());
    std::vector<ReadRequest> onwards(requests.begin(), requests.end());
    const Nanos now = clock_.Now();
    for (ReadRequest& request : onwards) {
      link_free_ = std::max(link_free_, now) + TimeOf(request.target.size());
      const Nanos due = link_free_ + ToNanos(link_.latency_seconds);
      passing_.push_back({.id = next_id_, .tag = request.tag, .due = due});
      request.tag = next_id_++;  // an id of its own: callers may use a tag twice
    }
    behind_->Submit(onwards);
  }

  void Collect(std::vector<ReadAnswer>& answers, std::optional<Nanos> wait) override {
    const Deadline deadline(clock_, wait);
    TakeFromBehind(0);
    while (!HandOver(answers) && !passing_.empty()) {
      const Nanos left = deadline.Left();
      if (left == 0) return;
      if (time_passes_) {
        AwaitOne(left);
      } else if (passing_.front().due > clock_.Now() || !TakeFromBehind(left)) {
        return;
      }
    }
  }

 private:
  struct Passing {
    std::uint64_t id;
    std::uint64_t tag;
    Nanos due;
    bool read = false;
    ReadAnswer answer = {};
  };

  Nanos TimeOf(std::size_t bytes) const {
    if (link_.bytes_per_second <= 0) return 0;
    return ToNanos(static_cast<double>(bytes) / link_.bytes_per_second);
  }

  // Returns when a request may have become ready, or after `left`.
  void AwaitOne(Nanos left) {
    const auto first_read = std::ranges::find_if(passing_, &Passing::read);
    if (first_read != passing_.end()) {  // read already: only the link delays it
      left = std::clamp<Nanos>(first_read->due - clock_.Now(), 0, left);
    }
    if (behind_->under_way() > 0) {
      TakeFromBehind(left);
    } else {
      std::this_thread::sleep_for(std::chrono::nanoseconds(left));
    }
  }

  bool TakeFromBehind(Nanos wait) {
    arrived_.clear();
    behind_->Collect(arrived_, wait == kForever ? std::nullopt : std::optional(wait));
    for (ReadAnswer& answer : arrived_) {
      const auto passing = std::ranges::find(passing_, answer.tag, &Passing::id);
      TROUPE_CHECK(passing != passing_.end());
      passing->read = true;
      passing->answer = std::move(answer);
      passing->answer.tag = passing->tag;
    }
    return !arrived_.empty();
  }

  // Returns whether the link and the reader were done with any request.
  bool HandOver(std::vector<ReadAnswer>& answers) {
    const std::size_t before = answers.size();
    const Nanos now = clock_.Now();
    std::erase_if(passing_, [&](Passing& passing) {
      if (!passing.read || passing.due > now) return false;
      answers.push_back(std::move(passing.answer));
      return true;
    });
    return answers.size() > before;
  }

  const std::unique_ptr<AsyncReader> behind_;
  const LinkSpeed link_;
  const Clock& clock_;
  const bool time_passes_;
  const std::string name_;
  Nanos link_free_ = 0;          // when the last byte handed in so far will have passed
  std::deque<Passing> passing_;  // as submitted, so `due` ascends
  std::vector<ReadAnswer> arrived_;
  std::uint64_t next_id_ = 0;
};

}  // namespace

std::unique_ptr<AsyncReader> MakeThrottledReader(std::unique_ptr<AsyncReader> behind,
                                                 const LinkSpeed& link, const Clock& clock) {
  TROUPE_CHECK(behind->under_way() == 0);
  return std::make_unique<ThrottledReader>(std::move(behind), link, clock);
}

}  // namespace troupe
