// Where this node and a peer disagree on rows of an expert and no checksum says whose weights are
// wrong, another peer that holds the expert is asked for the same rows: who has them as it does is
// right. One dispute at a time; others are left as they are. Threads: one at a time.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "base/clock.h"
#include "cluster/peer_outbox.h"
#include "cluster/spot_sample.h"

namespace troupe {

class SecondOpinion {
 public:
  enum class Verdict { kPeerWrong, kOwnWrong, kNone };
  struct Outcome {
    SpotCheck check;
    Verdict verdict = Verdict::kNone;
  };

  SecondOpinion(std::uint32_t width, SendFrame send) : width_(width), send_(std::move(send)) {}

  // `own`: what was computed here, which is not what was answered. A few of the rows that differ
  // are asked for. False: another one is under way, or nothing can be sent.
  bool Ask(SpotCheck check, std::vector<float> own, LinkId link, Nanos now);
  bool busy() const { return dispute_.has_value(); }
  // Whether it was an answer, or a refusal, of what was asked here.
  bool OnFrame(LinkId link, std::span<const std::byte> frame);
  void OnGone(LinkId link);
  // Once it is decided, or has taken too long.
  std::optional<Outcome> TakeDone(Nanos now);

 private:
  // Those alone.
  static void KeepDiffering(std::uint32_t width, SpotCheck& check, std::vector<float>& own);

  struct Dispute {
    SpotCheck check;
    std::vector<float> own, second;
    LinkId link = 0;
    std::uint64_t call = 0;
    Nanos until = 0;
    bool over = false;
  };

  const std::uint32_t width_;
  const SendFrame send_;
  std::uint64_t last_call_ = 0;
  std::optional<Dispute> dispute_;
};

}  // namespace troupe
