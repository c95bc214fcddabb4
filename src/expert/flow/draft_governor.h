// How many tokens of a draft ride in a pass. A row more costs time, and more where experts must be
// read; a token that is right saves what a pass takes for it. So what is needed is how likely the
// next guess of a kind is right, and how long a pass takes by its rows: both are measured as it
// goes, the first also of drafts that were not checked, by what the text then was. Besides there is
// an account: drafts may lose half of what they gained and 0.8 % of the time, and little
// more, however sure a drafter is (Cascade, 2506.20675, turns drafts off by such a measurement; the
// account bounds what finding out costs). What was saved is reckoned pass by pass, and put right by
// what passes without drafts take (draft_turns.h). It decides when tokens are computed, never
// which. Pure: time comes in as an argument.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

#include "expert/flow/draft_turns.h"
#include "expert/flow/row_speed.h"

namespace troupe {

// Guesses of like quality: of one drafter, and with about as much that speaks for them.
struct DraftKind {
  static constexpr std::size_t kSources = 8, kLevels = 8;

  std::size_t source = 0;    // below kSources
  std::size_t evidence = 0;  // as Draft::evidence: counted by powers of two

  std::size_t Level() const;
};

// What the rows of a pass, so far, are expected to give.
struct PassSoFar {
  double rows = 0;
  double tokens = 0;
  double drafting_seconds = 0;  // before it
};

// What it takes to have a draft, where a model guesses (draft_times.h); most drafters take nothing.
struct DraftCost {
  double a_token = 0;    // seconds
  double catch_up = 0;   // once, before its first token
  double text_left = 1;  // tokens that may have use of that: it is shared among them
};

// As many tokens of a draft as are worth a check, and the speed that is expected then.
struct DraftLength {
  std::uint32_t tokens = 0;  // 0: none pays
  double rate = 0;           // tokens a second
  double seconds = 0;        // that it takes to have the draft, as far as it counts here
};

struct DraftOutcome {
  DraftKind kind;
  std::uint32_t drafted = 0;
  std::uint32_t right = 0;  // of the first on
  bool checked = true;      // by a pass; else compared with what the text then was
};

struct DraftGovernorOptions {
  // Gains that are worth the trouble: of tokens a second, expected.
  double least_gain = 0.04;
  // Of all time, that drafts may lose; and passes' worth of it to begin with.
  double loss_share = 0.008;
  double first_loss = 0.8;
  DraftTurnsOptions turns = {};
};

// Of a model whose experts are read when they are needed: some tokens pass until the cache is again
// as it would be without drafts.
inline constexpr std::uint32_t kSettleBehindReads = 24;

class DraftGovernor {
 public:
  explicit DraftGovernor(DraftGovernorOptions options = {})
      : options_(options), turns_(options.turns) {}

  // How many tokens of a draft of `most` to check beside what is in the pass.
  DraftLength Weigh(DraftKind kind, std::size_t most, const RowSpeed& speed, const PassSoFar& pass,
                    const DraftCost& cost = {}) const;
  // The same; the pass then holds them.
  std::uint32_t Length(DraftKind kind, std::size_t most, const RowSpeed& speed, PassSoFar& pass);
  void Add(DraftKind kind, const DraftLength& offer, PassSoFar& pass) const;
  // Whether so much time may be spent on a draft that is only compared, to learn how drafts of a
  // model do that has none checked: half of the account remains, all such drafts together take a
  // small share of the time, whatever drafts have gained, and no passes are compared.
  bool MayTry(double seconds) const;
  void NoteTried(double seconds) { tried_ += seconds; }

  // Tokens of a draft that are expected to be right.
  double Expected(DraftKind kind, std::size_t tokens) const;

  // How a draft of this kind did. One that was compared and right shows that drafts are worth the
  // risk again.
  void Learn(const DraftOutcome& outcome);

  struct Pass {
    std::uint32_t decode_rows = 0;  // without guesses
    std::uint32_t prompt_rows = 0;
    std::uint32_t guessed = 0;
    std::uint32_t right = 0;
    double seconds = 0;
    double drafting_seconds = 0;  // beside it, without what models took to catch up
  };
  // A pass has ended, with guesses or without; `speed` is what was known before it. Gives the time
  // that the checks have saved, below 0 if they cost some; what drafting took is not in it.
  double OnPass(const Pass& pass, const RowSpeed& speed);

  double saved_seconds() const { return saved_; }

  // Passes without drafts for the sake of a comparison, and by how much what drafts were thought to
  // have saved was put right by it.
  struct Compared {
    std::uint64_t passes = 0;
    double more_saved_seconds = 0;  // below 0: less
  };
  const Compared& compared() const { return compared_; }

 private:
  struct Quality {
    double right = 0, tried = 0;  // guesses whose forerunners were right; older ones count less
  };

  double Odds(DraftKind kind) const;
  double Seconds(double rows, const RowSpeed& speed) const;
  void Book(double saved, double least);
  void BookTurn(const Pass& pass, double seconds, double saved);

  DraftGovernorOptions options_;
  std::array<std::array<Quality, DraftKind::kLevels>, DraftKind::kSources> quality_ = {};
  double most_rows_ = 1;  // of a pass that was measured
  bool checked_ = false;  // a draft, ever: the first check touches new memory, and is not believed
  DraftTurns turns_;
  Compared compared_;
  double credit_ = 0;       // seconds that may be lost
  double seconds_ = 0;      // of all passes
  double tried_ = 0;        // seconds for drafts that were only compared, catching up with it
  double plain_token_ = 0;  // seconds a token, without drafts
  bool began_ = false;
  double saved_ = 0;
};

}  // namespace troupe
