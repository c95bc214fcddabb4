// Who chooses the tokens of one answer: the weak machine that was asked (the end), the strong one
// beside it (the cloud), or both for a while. The tokens are the same wherever they are chosen, so
// a run may begin behind any of them, and the first to come is taken. Whoever it tells what to do
// has the engine, the link and the clock. Pure. Design: docs/design/end-cloud.md.
#pragma once

#include <troupe/request.h>

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "base/clock.h"
#include "base/status.h"
#include "split/flow/side.h"

namespace troupe {

// What is known of the cloud while an answer is under way.
struct CloudView {
  bool usable = false;         // it is there, with this model
  bool has_room = true;        // for another run of this end
  std::optional<Side> better;  // where the rest should be chosen; absent: no matter
  bool waits = false;          // for others, where it is: nothing is lost if it leaves
  // From now to the cloud's next token, as is expected; absent: nobody can say.
  std::optional<Nanos> next_token_in = {};
};

struct FlowLimits {
  Nanos silence = 1'500'000'000;  // of the cloud, before the end begins as well
  // A cloud that says that it lives has stalled once its next token takes `stall_factor` times as
  // long as expected, and at least `least_stall`; `unmeasured_stall` if nothing was expected.
  double stall_factor = 4;
  Nanos least_stall = 10'000'000'000, unmeasured_stall = 60'000'000'000;
  Nanos first_again = 1'000'000'000;  // before another try in a place that did not do, and doubled
  Nanos most_again = 60'000'000'000;  // by each further one up to this
  std::size_t patience = 16;  // tokens by which a run that is to replace another may be behind
  // Of one answer, while it waits; then it stays in line as well, and begins elsewhere beside.
  std::uint32_t moves = 2;
};

using RunId = std::uint64_t;

// What is to be done, in this order.
struct FlowStep {
  // Why a run begins.
  enum class Why {
    kFirst,    // the answer begins
    kFailure,  // the one in the other place has failed
    kWrong,    // the cloud has said a token that this model does not say
    kSilence,  // the cloud is silent: the end stands in for it
    kStall,    // the same, of a cloud that lives and gives no token
    kMove,     // it waited in the other place, and leaves that
    kGain,     // the rest is expected to end sooner here
  };
  struct Start {
    RunId run = 0;
    Side place = Side::kEnd;
    Why why = Why::kFirst;
    Nanos for_time = 0;  // of silence, or without a token

    bool operator==(const Start&) const = default;
  };

  std::vector<TokenId> tokens;  // the next ones of the answer
  std::vector<RunId> stop;
  std::vector<Start> start;            // behind all tokens so far
  bool cloud_is_wrong = false;         // it has said what this model does not say
  std::optional<FinishReason> finish;  // the answer has ended
  Status failure;                      // or cannot

  bool operator==(const FlowStep&) const = default;
};

// Sums of one answer.
struct FlowCounts {
  std::array<std::uint64_t, 2> tokens = {};      // by Side, as taken
  std::array<std::uint64_t, 2> unused = {};      // that came when another had them already
  std::array<std::uint64_t, 2> taken_over = {};  // where the other place was at work before
  std::array<std::uint64_t, 2> moved = {};       // there, as they waited in the other place
  std::uint64_t failures = 0;  // of the cloud, its link, or the end's layers of a cut prompt
  std::uint64_t refusals = 0;  // of a cloud that is well: full, too small, or not for this end
  std::uint64_t silences = 0;
  std::uint64_t stalls = 0;  // times that it lived and gave no token
  std::uint64_t wrong = 0;   // answers that failed, as a token that was shown was wrong

  FlowCounts& operator+=(const FlowCounts& other);
  bool operator==(const FlowCounts&) const = default;
};

class AnswerFlow {
 public:
  explicit AnswerFlow(const FlowLimits& limits = {}) : limits_(limits) {}

  FlowStep Begin(Side first, const CloudView& view, Nanos now);
  // What a run says. One that was stopped, or has ended, says nothing any more.
  FlowStep OnHeard(RunId run, Nanos now);  // it lives
  // It has got on without a token, or waits for this machine.
  FlowStep OnWork(RunId run, Nanos now);
  FlowStep OnTokens(RunId run, std::span<const TokenId> tokens, Nanos now);
  FlowStep OnEnd(RunId run, FinishReason reason, Nanos now);
  FlowStep OnFailure(RunId run, const Status& why, Nanos now);
  // From time to time.
  FlowStep OnTime(const CloudView& view, Nanos now);
  // The answer has ended for a reason that is not the runs'.
  FlowStep End();

  const std::vector<TokenId>& tokens() const { return tokens_; }
  bool runs(Side place) const { return At(place).has_value(); }
  // Who is at work: who gave the last token, or began.
  Side holder() const { return holder_; }
  const FlowCounts& counts() const { return counts_; }

 private:
  enum class Purpose { kAlone, kStandIn, kReplace };
  struct Run {
    RunId id = 0;
    Purpose purpose = Purpose::kAlone;
    std::size_t position = 0;  // of its next token
    std::size_t given = 0;
    Nanos heard = 0;
    Nanos worked_at = 0;  // its last token, or other work; or its beginning
    // To the next token: the longest that was expected since then.
    std::optional<Nanos> expected = {};
  };
  struct Retry {
    Nanos pause = 0;
    Nanos not_before = 0;
    bool failed = false;  // there, and did not only stay behind
  };

  std::optional<Run>& At(Side place) { return runs_[static_cast<std::size_t>(place)]; }
  const std::optional<Run>& At(Side place) const { return runs_[static_cast<std::size_t>(place)]; }
  std::optional<Side> PlaceOf(RunId run) const;
  void Start(Side place, Purpose purpose, FlowStep::Why why, Nanos now, FlowStep& step);
  void Stop(Side place, FlowStep& step);
  void StopAll(FlowStep& step);
  void WaitLonger(Side place, Nanos now, bool failed = false);
  // It cannot work there: any run waits, also one that is to stand in.
  bool HasJustFailed(Side place, Nanos now) const;
  // How long such a run may be without a token.
  Nanos StallAfter(const Run& run) const;
  // Whether the token at that place of the answer can be what this run says.
  bool Contradicts(Side place, std::optional<TokenId> token, Nanos now, FlowStep& step);
  void Take(Side place, TokenId token, Nanos now, FlowStep& step);
  void Hold(Side place);
  void JudgeReplacement(Side place, Nanos now, FlowStep& step);

  const FlowLimits limits_;
  std::vector<TokenId> tokens_;
  std::array<std::optional<Run>, 2> runs_;
  std::array<Retry, 2> retries_;
  Side holder_ = Side::kEnd;
  bool cloud_usable_ = false;
  std::optional<std::size_t> cloud_failed_at_;  // tokens there were
  std::uint32_t moves_ = 0;
  RunId last_run_ = 0;
  FlowCounts counts_;
};

}  // namespace troupe
