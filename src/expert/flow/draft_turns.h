// Whether drafts really save what they are thought to save: behind a stretch of passes with drafts
// come a few without, and the time a token took in both is compared. What is thought can be wrong
// for long, as drafts change what it is thought from: checks read experts for wrong guesses, these
// drive others out of the cache, passes without guesses take longer for it, and beside those drafts
// look good; and where each pass has a draft, passes without one are thought to take what they took
// long ago, when the cache was still empty. So rests alone say when drafts save so much that no
// rest is needed for some time. Pure.
#pragma once

#include <cstdint>

namespace troupe {

struct DraftTurnsOptions {
  // Checks until a rest, at first; drafts that pay are left alone for longer each time.
  std::uint32_t first_stretch = 16, longest_stretch = 256;
  std::uint32_t rest = 8;  // passes that are compared
  // Passes of a rest before those. Where experts are read, what guesses have driven out of the
  // cache is read again in the first passes without them, which are no measure of a run without
  // drafts.
  std::uint32_t settle = 0;
  // Times as fast as without drafts, by the rests so far: then there is no doubt.
  double no_doubt = 1.8;
};

class DraftTurns {
 public:
  explicit DraftTurns(DraftTurnsOptions options = {}) : options_(options) {}

  // The next pass takes no guesses.
  bool resting() const { return resting_; }

  struct Pass {
    std::uint32_t rows = 0;  // without guesses
    std::uint32_t guessed = 0;
    std::uint32_t right = 0;
    double seconds = 0;  // with what drafting took
    double saved = 0;    // seconds that its drafts are thought to have saved
  };
  // A pass without prompts has ended. Behind the last pass of a rest: by how many seconds more the
  // drafts of the stretch before it have saved than was thought, below 0 if less; else 0.
  double OnPass(const Pass& pass);

 private:
  // The stretch that has ended needs no rest behind it.
  bool IsBeyondDoubt() const;

  struct Stretch {
    double passes = 0, checks = 0, tokens = 0, seconds = 0, saved = 0;
    void Add(const Pass& pass);
  };

  DraftTurnsOptions options_;
  std::uint32_t rows_ = 0;  // of the passes that are compared: others take another time a token
  bool resting_ = false;
  std::uint32_t stretch_ = options_.first_stretch;
  Stretch drafting_, rest_;
  std::uint32_t settled_ = 0;                    // passes of the rest under way that do not count
  double plain_tokens_ = 0, plain_seconds_ = 0;  // of all rests; older ones count less
};

}  // namespace troupe
