// Gives peers pieces of the experts that are held here: one piece for each fetch, so that whoever
// fetches sets the pace. Threads: one at a time.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <utility>
#include <vector>

#include "cluster/wire/fetch.h"
#include "model/expert_layout.h"
#include "runtime/held_experts.h"

namespace troupe {

class PieceGiver {
 public:
  // An expert's, if it is known without reading it: links wait meanwhile.
  using ChecksumOf = std::function<std::optional<std::uint64_t>(ExpertId id)>;

  // Both must outlive it.
  PieceGiver(HeldExperts& held, const ExpertLayouts& layouts, ChecksumOf checksum_of,
             std::size_t piece_bytes = 64 << 10)
      : held_(held),
        layouts_(layouts),
        checksum_of_(std::move(checksum_of)),
        piece_bytes_(piece_bytes) {}

  // The frame that answers it: a piece, or why there is none.
  std::vector<std::byte> Answer(const PeerFetch& fetch);

  std::uint64_t bytes() const { return bytes_; }  // given

 private:
  HeldExperts& held_;
  const ExpertLayouts& layouts_;
  const ChecksumOf checksum_of_;
  const std::size_t piece_bytes_;
  std::uint64_t bytes_ = 0;
};

}  // namespace troupe
