// Gives peers pieces of the experts that are held here: one piece for each fetch, so that whoever
// fetches sets the pace. Threads: one at a time.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

#include "cluster/wire/fetch.h"
#include "model/expert_layout.h"
#include "runtime/held_experts.h"

namespace troupe {

class PieceGiver {
 public:
  // Both must outlive it.
  PieceGiver(HeldExperts& held, const ExpertLayouts& layouts, std::size_t piece_bytes = 512 << 10)
      : held_(held), layouts_(layouts), piece_bytes_(piece_bytes), hashes_(held.grid().Count()) {}

  // The frame that answers it: a piece, or why there is none.
  std::vector<std::byte> Answer(const PeerFetch& fetch);

  std::uint64_t bytes() const { return bytes_; }  // given

 private:
  HeldExperts& held_;
  const ExpertLayouts& layouts_;
  const std::size_t piece_bytes_;
  std::vector<std::optional<std::uint64_t>> hashes_;  // of those that were asked for
  std::uint64_t bytes_ = 0;
};

}  // namespace troupe
