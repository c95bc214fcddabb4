#include "sim/batch_play.h"

#include <algorithm>
#include <map>
#include <utility>

namespace troupe {
namespace {

Nanos AsNanos(double seconds) { return static_cast<Nanos>(seconds * 1e9); }

class BatchPlay {
 public:
  BatchPlay(std::span<const PlayedRequest> requests, const EngineSetup& setup)
      : requests_(requests), engine_(setup) {}

  BatchPlayResult Play() {
    if (!requests_.empty()) now_ = requests_.front().recorded.seconds;
    const double start = now_;
    while (next_ < requests_.size() || engine_.has_work()) {
      if (!engine_.has_work()) now_ = std::max(now_, requests_[next_].recorded.seconds);
      TakeArrivals();
      result_.dropped += engine_.DropIf([this](RequestId number) { return IsLate(number); });
      if (const auto pass = engine_.BeginPass()) EndPass(*pass);
    }
    result_.seconds = now_ - start;
    result_.most_passed_over = engine_.most_passed_over();
    return result_;
  }

 private:
  std::optional<Nanos> DeadlineOf(RequestId number) const {
    const PlayedRequest& request = requests_[number];
    if (!request.timeout_s) return std::nullopt;
    return AsNanos(request.recorded.seconds + *request.timeout_s);
  }
  bool IsLate(RequestId number) const {
    return DeadlineOf(number).value_or(AsNanos(now_)) < AsNanos(now_);
  }

  void TakeArrivals() {
    for (; next_ < requests_.size() && requests_[next_].recorded.seconds <= now_; ++next_) {
      const RecordedRequest& recorded = requests_[next_].recorded;
      engine_.Add(next_, recorded.input_tokens, recorded.output_tokens, DeadlineOf(next_));
    }
  }

  void EndPass(const EnginePlay::Pass& pass) {
    now_ += pass.seconds;
    ++result_.passes;
    result_.rows += pass.decodes + pass.prompts;
    result_.prompt_tokens += pass.prompts;
    result_.pass.Note(pass.seconds);
    for (const EnginePlay::Progress& done : engine_.EndPass()) {
      if (done.has_token) NoteToken(done.request);
      if (!done.ended) continue;
      last_token_.erase(done.request);
      ++result_.answered;
    }
  }

  void NoteToken(RequestId number) {
    const auto [last, is_first] = last_token_.try_emplace(number, now_);
    if (is_first) {
      result_.first.Note(now_ - requests_[number].recorded.seconds);
    } else {
      result_.gap.Note(now_ - std::exchange(last->second, now_));
    }
    ++result_.generated;
  }

  std::span<const PlayedRequest> requests_;
  EnginePlay engine_;
  double now_ = 0;
  std::size_t next_ = 0;  // request to come
  std::map<RequestId, double> last_token_;
  BatchPlayResult result_;
};

}  // namespace

BatchPlayResult PlayBatches(std::span<const PlayedRequest> requests, const EngineSetup& setup) {
  return BatchPlay(requests, setup).Play();
}

}  // namespace troupe
