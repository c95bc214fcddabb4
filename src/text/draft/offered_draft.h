// A draft that comes while its answer is being written: a weak device guesses ahead of this machine
// and tells what it expects (docs/design/end-cloud.md). It holds the last one that came, until
// whoever writes the answer looks. Thread-safe.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "base/mutex.h"
#include "text/draft/drafter.h"

namespace troupe {

class OfferedDraft {
 public:
  // The answer is expected to go on like this behind its first `from` tokens. Offers may overtake
  // each other on their way: of those that came the one of the highest number counts.
  void Offer(std::uint64_t number, std::size_t from, std::vector<TokenId> tokens);

  // What follows this beginning of the answer, `most` tokens at most; nothing where the answer has
  // gone another way, or is past the offer already.
  Draft After(std::span<const TokenId> answer, std::size_t most) const;

  // A pass has checked so many of its tokens, of which the first `right` were right.
  void NoteCheck(std::uint32_t checked, std::uint32_t right);

  struct Counts {
    std::uint64_t checked = 0;  // tokens
    std::uint64_t right = 0;

    bool operator==(const Counts&) const = default;
  };
  Counts counts() const;

 private:
  mutable Mutex mu_;
  std::uint64_t number_ TROUPE_GUARDED_BY(mu_) = 0;
  std::size_t from_ TROUPE_GUARDED_BY(mu_) = 0;
  std::vector<TokenId> tokens_ TROUPE_GUARDED_BY(mu_);
  Counts counts_ TROUPE_GUARDED_BY(mu_);
};

}  // namespace troupe
