// Whom the misses of a pass are asked of, and what happens when an answer is late, refused or will
// never come: the next holder is asked too if it is sooner than the disk, and then the disk.
// Whatever comes first is taken, an answer while its expert is loaded, too; all are the same bytes.
// What the disk fails at is asked of every holder before it is given up.
//
// Pure: time comes in as an argument, what is to be sent or loaded goes out as values. Whoever
// drives it sends the calls, tells of answers and losses, and comes back at NextTime().
#pragma once

#include <cstdint>
#include <limits>
#include <optional>
#include <span>
#include <vector>

#include "base/clock.h"
#include "expert/flow/miss_plan.h"

namespace troupe {

using PeerCallId = std::uint64_t;
using PeerIndex = std::uint32_t;

struct CallRules {
  // An answer is late after this many times the time that was expected, and not before `least`.
  double late_after = 2;
  Nanos least = 2'000'000;
  // After this many times that a peer need not begin with it any more: others have answered.
  std::uint32_t given_up_after = 4;
  // Where the disk has failed the last holder has so much more time.
  Nanos without_disk = 30'000'000'000;
  // Where the disk has failed a holder that is busy is asked again after this.
  Nanos busy_pause = 20'000'000;
};

// An expert that a layer misses, and who may compute it, first choice first; at least one.
struct AskedExpert {
  std::uint32_t expert = 0;
  std::uint32_t rows = 0;
  std::span<const PeerIndex> holders;
  double load_seconds = 0;  // by the disk; 0: not measured
};

// One message to one peer.
struct CallToSend {
  PeerCallId call = 0;
  PeerIndex peer = 0;
  bool is_hedge = false;
  Nanos given_up_after = 0;  // from now on
  std::vector<std::uint32_t> experts;

  bool operator==(const CallToSend&) const = default;
};

// Nobody waits for what that call still owes.
struct CallToCancel {
  PeerCallId call = 0;
  PeerIndex peer = 0;

  bool operator==(const CallToCancel&) const = default;
};

struct CallCounters {
  std::uint64_t calls = 0, hedges = 0;
  std::uint64_t experts = 0;       // asked for, each once however many are asked
  std::uint64_t answered = 0;      // of them by a peer
  std::uint64_t to_disk = 0;       // of them left to the disk
  std::uint64_t overtook = 0;      // of these, answered by a peer before their load ended
  std::uint64_t failed_loads = 0;  // that a holder was asked for, as the disk could not read them
  std::uint64_t asked_again = 0;   // of these, times that all holders were busy
  std::uint64_t unused = 0;  // answers that came after another one, or when nobody waited any more
  std::uint64_t refused = 0, lost = 0, cancelled = 0;  // calls
  // Messages of answers (PeerCalls): more came than are kept; they could not be read, or did not
  // fit what was asked.
  std::uint64_t dropped = 0, malformed = 0;

  bool operator==(const CallCounters&) const = default;
};

class CallFlow {
 public:
  explicit CallFlow(CallRules rules = {}) : rules_(rules) {}

  // A layer asks. `peers` says what each costs, by its index. Nothing else may wait.
  void Ask(std::span<const AskedExpert> experts, std::span<const Place> peers);

  // One expert of a call was answered. Whether that is the first answer: then it is to be used.
  bool OnAnswered(PeerCallId call, std::uint32_t expert);
  // The peer will not answer what it has not answered yet: it refuses, or that was all.
  void OnRefused(PeerCallId call);
  // So many calls wait for the peer that it took no more. Where the disk has failed it is asked
  // again after a pause, for as long as an answer is waited for there.
  void OnBusy(PeerCallId call, Nanos now);
  void OnLost(PeerIndex peer);
  // The disk was sooner.
  void OnLoaded(std::uint32_t expert);
  // The disk has failed: its holders are asked, however slow they are. Of the layer that has asked
  // last, if only for nothing.
  void AskInPlaceOfDisk(const AskedExpert& asked);
  // The calls that have become late.
  std::vector<PeerCallId> OnTime(Nanos now);
  // The pass wants nothing any more. What still comes is not used.
  void Forget();

  // To be sent now, and to be loaded from the disk: each is told once.
  std::vector<CallToSend> TakeCalls(Nanos now);
  std::vector<std::uint32_t> TakeToLoad();
  std::vector<CallToCancel> TakeCancels();

  // Experts that a peer may still answer.
  std::size_t waiting() const { return waiting_.size(); }
  // When OnTime has something to do; none if nobody can become late.
  std::optional<Nanos> NextTime() const;
  const CallCounters& counters() const { return counters_; }

 private:
  struct OpenCall {
    PeerCallId id = 0;
    PeerIndex peer = 0;
    bool is_late = false;
  };
  static constexpr Nanos kNever = std::numeric_limits<Nanos>::max();
  struct Waiting {
    std::uint32_t expert = 0;
    std::uint32_t rows = 0;
    std::vector<PeerIndex> holders;  // not asked yet, next one first
    std::vector<OpenCall> calls;     // that may still answer it
    Nanos late_at = kNever;
    double load_seconds = 0;
    bool on_disk = false;              // it is loaded meanwhile
    std::vector<PeerIndex> busy = {};  // to be asked again, as the disk has failed
    Nanos rests_until = kNever;        // if nobody but those can be asked
    Nanos given_up_at = kNever;        // that they are asked again
    bool disk_failed = false, waits_long = false;
  };

  // The next holder that is sooner than the disk, or the disk.
  void TurnToNext(std::size_t waiting, bool is_hedge);
  void AskNext(std::size_t waiting, bool is_hedge);
  void TakeBusyAgain(Waiting& one, Nanos now);
  // Whether anything waited for it.
  bool DropCall(PeerCallId call);
  // It is loaded, and whoever was asked may still be sooner.
  void ToDisk(std::size_t waiting);
  void Erase(std::size_t waiting) {
    waiting_.erase(waiting_.begin() + static_cast<std::ptrdiff_t>(waiting));
  }
  Nanos AllowedFor(const CallToSend& call) const;
  CallToSend& CallTo(PeerIndex peer, bool is_hedge);

  CallRules rules_;
  std::vector<Waiting> waiting_;
  std::vector<Place> peers_;  // as they were when the layer asked
  std::vector<CallToSend> to_send_;
  std::vector<OpenCall> sent_;  // and not answered to the end
  std::vector<std::uint32_t> to_load_;
  PeerCallId last_call_ = 0;
  CallCounters counters_;
};

}  // namespace troupe
