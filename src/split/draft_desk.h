// The drafts of an end's answers, all together: which answers have some, at which pace, from what
// was measured here, and what became of them. On the loop's thread.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

#include "base/clock.h"
#include "split/answer_draft.h"
#include "split/cloud_source.h"
#include "split/flow/draft_pace.h"
#include "split/flow/place_costs.h"

namespace troupe {

class DraftDesk final : public DraftWorld {
 public:
  struct Options {
    std::size_t most = 1;  // answers that have drafts at a time
    bool always = false;   // also where they are not expected to gain
  };
  // What drafts depend on beside what they have measured themselves.
  struct Facts {
    double own_token_seconds = 0, cloud_token_seconds = 0;  // 0: not measured
    double round_trip_seconds = 0;
    bool cloud_checks = false;
  };

  // All must outlive it.
  DraftDesk(const Clock& clock, TokenSource& guesser, CloudSource& cloud, const Options& options);

  void SetFacts(const Facts& facts) { facts_ = facts; }
  // What the cloud costs with drafts, where without it costs this; absent: no draft would gain.
  std::optional<PlaceCosts> Costs(const std::optional<PlaceCosts>& cloud) const;
  // Whether the cloud would check drafts, and hardly an answer had any yet.
  bool is_new() const { return facts_.cloud_checks && begun_ < kTrials; }
  // For a run in the cloud; absent: the cloud checks none.
  std::optional<std::uint64_t> NewName();
  std::shared_ptr<AnswerDraft> Draft(Request rest, std::uint64_t name, const DraftVerdict& told);

  double odds() const { return meter_.Odds(); }
  double taken() const { return meter_.Taken(Now()); }
  double factor() const { return meter_.Factor(Now()); }

  // DraftWorld
  Nanos Now() const override { return clock_.Now(); }
  TokenSource& Guesser() override { return guesser_; }
  void Offer(const DraftOffer& offer, OnVerdict on_verdict) override {
    cloud_.Offer(offer, std::move(on_verdict));
  }
  DraftPlan Pace() const override;
  double RoundTripSeconds() const override { return facts_.round_trip_seconds; }
  DraftMeter& meter() override { return meter_; }
  DraftCounts& counts() override { return counts_; }
  void OnDrafted(const DraftedAnswer& drafted) override;

 private:
  static constexpr std::size_t kTrials = 3;  // answers

  const Clock& clock_;
  TokenSource& guesser_;
  CloudSource& cloud_;
  const Options options_;
  Facts facts_;
  DraftMeter meter_;
  DraftCounts counts_;
  std::uint64_t last_name_;  // the first is drawn: ends that share a key do not share names
  std::vector<std::weak_ptr<AnswerDraft>> drafts_;
  std::size_t begun_ = 0;  // answers that had some
};

}  // namespace troupe
