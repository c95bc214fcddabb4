// Brings what a step of a plan wants held from peers, where their links give at least half of what
// the own disk does: the disk is left to passes. What does not come, or not in time, is read. Only
// experts whose checksum the own container tells are fetched: nothing else would show that a peer
// lies. Threads: one at a time.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <vector>

#include "base/clock.h"
#include "cluster/calls/expert_fetch.h"
#include "cluster/peer_calls.h"
#include "cluster/peer_directory.h"
#include "cluster/peer_outbox.h"
#include "cluster/plan/holding_steps.h"
#include "expert/expert_id.h"

namespace troupe {

class StepFetcher {
 public:
  struct Model {
    std::size_t row_bytes = 0;                                             // of an answer
    std::function<std::uint64_t(std::uint32_t layer)> bytes_of;            // an expert's
    std::function<std::optional<std::uint64_t>(ExpertId id)> checksum_of;  // if it is known
  };

  // All must outlive it.
  StepFetcher(Model model, const PeerDirectory& directory, SendFrame send);

  // Those of the step's experts that are on their way now, among them its first; OnTime gives them
  // in the end. Where that one is to be read none is. Speeds that are not known, which are none,
  // keep from fetching.
  std::vector<std::uint32_t> Begin(const HoldStep& step, std::span<const MeasuredLink> links,
                                   double disk_bytes_per_second);
  // Sends what is due. Once: what has come.
  std::optional<FetchedExperts> OnTime(Nanos now);
  // When OnTime has something to do.
  std::optional<Nanos> NextTime() const;

  // A piece, or a refusal.
  void OnFrame(LinkId link, std::span<const std::byte> frame, Nanos now);
  void OnGone(LinkId link) { fetch_.OnLost(link); }

  const FetchCounters& counters() const { return fetch_.counters(); }

 private:
  const Model model_;
  const PeerDirectory& directory_;
  const SendFrame send_;
  ExpertFetch fetch_;
  bool active_ = false;
};

}  // namespace troupe
