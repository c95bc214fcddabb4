// What one answer with drafts took beside what was planned of it: by it the next ones are planned
// (draft_pace.h). Of its tokens that came while it had drafts, so that nothing is lost where it
// goes on elsewhere. Pure.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>

#include "base/clock.h"
#include "split/flow/draft_pace.h"

namespace troupe {

class DraftTally {
 public:
  // The cloud has told a token, `plan` being what was planned of it. Where that expects nothing of
  // drafts it says nothing of them either.
  void OnTold(const DraftPlan& plan, Nanos now);
  // Guesses are on their way to the cloud.
  void OnOffer() { ++under_way_; }
  // It has said so far how many were right, or the offer was lost.
  void OnVerdict(std::optional<std::uint64_t> right);

  DraftedAnswer Sum() const;

 private:
  DraftedAnswer sum_;
  std::optional<Nanos> last_;  // when a token came
  std::size_t under_way_ = 0;  // offers
  // What the cloud's last word is about. What it took of offers that are under way nobody knows.
  double told_tokens_ = 0, told_in_time_ = 0;
};

}  // namespace troupe
