#include "split/play/end_cloud_play.h"

#include <algorithm>
#include <cmath>
#include <memory>
#include <utility>
#include <vector>

#include "base/check.h"
#include "base/rng.h"

namespace troupe {
namespace {

// Before the load each end has answered here and there, so that its costs are measured.
constexpr std::uint32_t kWarmings = 3, kWarmTokens = 4;
constexpr double kWithoutBeginning = 0.2;  // of the time: when the load is not up yet

class EndCloudPlay {
 public:
  EndCloudPlay(const EndCloudSetup& setup, const EndCloudLoad& load, const PlaceRule& rule)
      : setup_(setup),
        load_(load),
        seconds_(load.recorded.empty() ? load.seconds
                                       : std::max(load.recorded.back().seconds, 1e-9)),
        cloud_(agenda_, setup.cloud),
        rng_(load.seed) {
    for (std::uint32_t i = 0; i < setup.ends; ++i) {
      ends_.push_back(
          std::make_unique<PlayedEnd>(agenda_, cloud_, rule,
                                      PlayedEndSetup{.engine = setup.end,
                                                     .round_trip_seconds = setup.round_trip_seconds,
                                                     .most_in_cloud = setup.most_in_cloud,
                                                     .key = setup.one_key ? 0 : i}));
    }
  }

  EndCloudResult Play() {
    for (std::size_t i = 0; i < ends_.size(); ++i) Warm(i, kWarmings);
    RunUntilIdle();
    for (const auto& end : ends_) end->ForgetCounts();
    const double end_before = EndBusy(), cloud_before = cloud_.engine().busy_seconds();
    start_ = agenda_.Seconds();
    if (!load_.recorded.empty()) {
      for (const RecordedRequest& request : load_.recorded) Arrive(request);
    } else if (load_.per_second > 0) {
      ArriveAtRandom();
    } else {
      for (std::size_t i = 0; i < ends_.size(); ++i) {
        for (std::uint32_t k = 0; k < load_.together; ++k) GoOnAsking(i);
      }
    }
    RunUntilIdle();
    const double took = agenda_.Seconds() - start_;
    result_.answers = Counts();
    if (took > 0) {
      result_.end_busy = (EndBusy() - end_before) / took / static_cast<double>(ends_.size());
      result_.cloud_busy = (cloud_.engine().busy_seconds() - cloud_before) / took;
    }
    result_.per_second = static_cast<double>(over_late_) / ((1 - kWithoutBeginning) * seconds_);
    return result_;
  }

 private:
  void RunUntilIdle() {
    while (under_way_ + to_come_ > 0) TROUPE_CHECK(agenda_.RunNext());
  }

  void Warm(std::size_t end, std::uint32_t left) {
    if (left == 0) return;
    ++under_way_;
    const std::uint32_t tokens = std::max(load_.answer_tokens, kWarmTokens);
    ends_[end]->Ask(
        load_.prompt_tokens, tokens,
        [this, end, left, tokens] {
          ends_[end]->Ask(
              load_.prompt_tokens, tokens,
              [this, end, left] {
                Warm(end, left - 1);
                --under_way_;
              },
              Side::kCloud);
        },
        Side::kEnd);
  }

  void Ask(std::size_t end, std::uint32_t prompt, std::uint32_t tokens,
           std::function<void()> on_over) {
    ++under_way_;
    ++result_.requests;
    const double came = agenda_.Seconds();
    const auto left = std::make_shared<std::uint32_t>(load_.prompts);
    for (std::uint32_t i = 0; i < load_.prompts; ++i) {
      ends_[end]->Ask(prompt, tokens, [this, came, left, on_over] {
        if (--*left > 0) return;
        const double now = agenda_.Seconds();
        result_.latency.Note(now - came);
        const double at = (now - start_) / seconds_;
        over_late_ += at > kWithoutBeginning && at <= 1 ? 1 : 0;
        --under_way_;
        on_over();
      });
    }
  }

  void Arrive(const RecordedRequest& request) {
    ++to_come_;
    agenda_.After(request.seconds, [this, request] {
      --to_come_;
      Ask(next_end_++ % ends_.size(), request.input_tokens, request.output_tokens, [] {});
    });
  }

  void ArriveAtRandom() {
    double at = 0;
    while ((at -= std::log(1 - rng_.Uniform()) / load_.per_second) < load_.seconds) {
      Arrive({.seconds = at,
              .input_tokens = load_.prompt_tokens,
              .output_tokens = load_.answer_tokens});
    }
  }

  void GoOnAsking(std::size_t end) {
    if (agenda_.Seconds() - start_ >= load_.seconds) return;
    Ask(end, load_.prompt_tokens, load_.answer_tokens, [this, end] { GoOnAsking(end); });
  }

  PlayedEndCounts Counts() const {
    PlayedEndCounts sums;
    for (const auto& end : ends_) {
      for (std::size_t i : {0, 1}) sums.begun[i] += end->counts().begun[i];
      sums.flow += end->counts().flow;
    }
    return sums;
  }
  double EndBusy() const {
    double seconds = 0;
    for (const auto& end : ends_) seconds += end->engine().busy_seconds();
    return seconds;
  }

  const EndCloudSetup& setup_;
  const EndCloudLoad& load_;
  const double seconds_;  // in which requests come
  Agenda agenda_;
  PlayedCloud cloud_;
  std::vector<std::unique_ptr<PlayedEnd>> ends_;
  Rng rng_;
  double start_ = 0;
  std::size_t next_end_ = 0;
  std::size_t under_way_ = 0, to_come_ = 0;  // requests
  std::uint64_t over_late_ = 0;
  EndCloudResult result_;
};

}  // namespace

EndCloudResult PlayEndsAndCloud(const EndCloudSetup& setup, const EndCloudLoad& load,
                                const PlaceRule& rule) {
  return EndCloudPlay(setup, load, rule).Play();
}

}  // namespace troupe
