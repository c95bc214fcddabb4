// Which answers of peers are computed again, and which of their rows: drawn, so that no peer knows
// where it may lie, and bounded, so that a burst of answers takes no more memory than planned. Of
// more answers than fit each has the same chance to stay. Pure: whoever uses it has the lock.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <span>
#include <utility>
#include <vector>

#include "base/rng.h"
#include "cluster/wire/wire_rows.h"
#include "expert/expert_grid.h"

namespace troupe {

// An answer that was used and can be computed again, to see whether the peer told the truth.
struct SpotCheck {
  std::uint64_t start = 0;  // of the peer: another one's answers are not this one's
  ExpertId id;
  RowForm form = RowForm::kFloat;
  std::size_t rows = 0;
  std::vector<std::byte> asked;  // the rows as they were sent
  RowForm answer_form = RowForm::kFloat;
  std::vector<float> answer;

  std::size_t bytes() const { return asked.size() + answer.size() * sizeof(float); }
};

class SpotSample {
 public:
  // `share` of the answers, with at most so many bytes that wait to be checked. Whoever wants all
  // has every row checked, as far as they fit; a share is of answers, a few rows of each.
  SpotSample(double share, std::size_t most_bytes, std::uint64_t seed)
      : share_(share), most_bytes_(most_bytes), rng_(seed) {}

  // The next answers of the peer of that start are all wanted, whatever the share.
  void Suspect(std::uint64_t start) { suspects_[start] = kAnswersOfASuspect; }
  static constexpr std::uint32_t kAnswersOfASuspect = 64;
  // No others will answer: a peer that starts anew, again and again, is a suspect once.
  void ForgetSuspectsBut(std::span<const std::uint64_t> starts);
  std::size_t suspects() const { return suspects_.size(); }

  // Of an answer of `rows` by the peer of that start: those to be checked, rising; none, if it was
  // not drawn. `row_bytes`: what a row takes here.
  std::vector<std::uint32_t> Draw(std::uint64_t start, std::size_t rows, std::size_t row_bytes);
  // Of an answer that was drawn. It, or another one in its place, may be left out.
  void Keep(SpotCheck check);
  // To be checked: a new burst begins.
  std::vector<SpotCheck> Take();

  // Rows of answers that were drawn, and will not be checked.
  std::uint64_t left_out() const { return left_out_; }

 private:
  bool WantsAllOf(std::uint64_t start) const { return share_ >= 1 || suspects_.contains(start); }

  const double share_;
  const std::size_t most_bytes_;
  Rng rng_;
  std::map<std::uint64_t, std::uint32_t> suspects_;  // by start: how many answers are to come
  std::vector<SpotCheck> kept_;
  std::size_t bytes_ = 0;
  std::uint64_t offered_ = 0;  // in this burst
  std::uint64_t left_out_ = 0;
};

}  // namespace troupe
