#include "sim/batch_play.h"

#include <algorithm>
#include <cmath>
#include <deque>
#include <vector>

#include "base/check.h"

namespace troupe {
namespace {

Nanos AsNanos(double seconds) { return static_cast<Nanos>(seconds * 1e9); }

class BatchPlay {
 public:
  BatchPlay(std::span<const PlayedRequest> requests, const BatchPlaySetup& setup)
      : requests_(requests), setup_(setup) {}

  BatchPlayResult Play() {
    if (!requests_.empty()) now_ = requests_.front().recorded.seconds;
    const double start = now_;
    while (next_ < requests_.size() || !waiting_.empty() || !active_.empty()) {
      if (waiting_.empty() && active_.empty()) {
        now_ = std::max(now_, requests_[next_].recorded.seconds);
      }
      TakeArrivals();
      DropLate();
      Admit();
      if (!active_.empty()) RunPass();
    }
    result_.seconds = now_ - start;
    return result_;
  }

 private:
  struct Active {
    std::size_t number = 0;  // its request's
    std::uint32_t prompt_left = 0, generated = 0;
    std::uint32_t passed_over = 0;
    double last_token = 0;
  };

  std::optional<Nanos> DeadlineOf(std::size_t number) const {
    const PlayedRequest& request = requests_[number];
    if (!request.timeout_s) return std::nullopt;
    return AsNanos(request.recorded.seconds + *request.timeout_s);
  }
  bool IsLate(std::size_t number) const {
    return DeadlineOf(number).value_or(AsNanos(now_)) < AsNanos(now_);
  }

  void TakeArrivals() {
    while (next_ < requests_.size() && requests_[next_].recorded.seconds <= now_) {
      waiting_.push_back(next_++);
    }
  }

  void DropLate() {
    result_.dropped += std::erase_if(waiting_, [&](std::size_t number) { return IsLate(number); });
    result_.dropped +=
        std::erase_if(active_, [&](const Active& active) { return IsLate(active.number); });
  }

  void Admit() {
    while (!waiting_.empty() && active_.size() < setup_.sequences) {
      const std::size_t number = waiting_.front();
      waiting_.pop_front();
      active_.push_back({.number = number, .prompt_left = requests_[number].recorded.input_tokens});
    }
  }

  void RunPass() {
    std::vector<BatchCandidate> candidates;
    for (const Active& active : active_) {
      candidates.push_back({.request = active.number,
                            .phase = active.prompt_left > 0 ? Phase::kPrompt : Phase::kDecode,
                            .prompt_left = active.prompt_left,
                            .deadline = DeadlineOf(active.number),
                            .passed_over = active.passed_over});
    }
    const BatchChoice choice = ChooseBatch(candidates, meter_.speed(), setup_.limits);
    const std::uint32_t decodes = choice.RowsIn(Phase::kDecode),
                        prompts = choice.RowsIn(Phase::kPrompt);
    TROUPE_CHECK(decodes + prompts > 0);
    const double seconds = setup_.costs.Seconds(decodes + prompts);
    now_ += seconds;
    meter_.PassEnded(decodes, prompts, seconds);
    ++result_.passes;
    result_.rows += decodes + prompts;
    result_.prompt_tokens += prompts;
    result_.pass.Note(seconds);
    for (Active& active : active_) ++active.passed_over;
    for (const BatchRows& group : choice.rows) TakeRows(group);
    for (const Active& active : active_) {
      result_.most_passed_over = std::max(result_.most_passed_over, active.passed_over);
    }
    result_.answered += std::erase_if(active_, [&](const Active& active) {
      return active.generated == requests_[active.number].recorded.output_tokens;
    });
  }

  void TakeRows(const BatchRows& group) {
    Active& active = *std::ranges::find(active_, group.request, &Active::number);
    active.passed_over = 0;
    if (group.phase == Phase::kPrompt) {
      active.prompt_left -= group.rows;
      if (active.prompt_left > 0) return;
      result_.first.Note(now_ - requests_[active.number].recorded.seconds);
    } else {
      result_.gap.Note(now_ - active.last_token);
    }
    active.last_token = now_;
    ++active.generated;
    ++result_.generated;
  }

  std::span<const PlayedRequest> requests_;
  const BatchPlaySetup& setup_;
  double now_ = 0;
  std::size_t next_ = 0;             // request to come
  std::deque<std::size_t> waiting_;  // numbers of requests
  std::vector<Active> active_;       // in order of arrival
  RowSpeedMeter meter_;
  BatchPlayResult result_;
};

}  // namespace

double PassCosts::Seconds(std::uint32_t rows) const {
  const double left_out = std::pow(1 - static_cast<double>(top_k) / experts, rows);
  return pass_seconds + rows * row_seconds + layers * experts * (1 - left_out) * expert_seconds;
}

BatchPlayResult PlayBatches(std::span<const PlayedRequest> requests, const BatchPlaySetup& setup) {
  return BatchPlay(requests, setup).Play();
}

}  // namespace troupe
