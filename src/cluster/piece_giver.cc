#include "cluster/piece_giver.h"

#include <algorithm>

namespace troupe {

std::vector<std::byte> PieceGiver::Answer(const PeerFetch& fetch) {
  const ExpertId id = fetch.expert;
  const auto refused = [&](PeerFetchRefused::Reason reason, std::string_view why) {
    return Encode(PeerFetchRefused{
        .id = fetch.id, .reason = reason, .text = fmt::format("{}: {}", ToString(id), why)});
  };
  if (!held_.grid().Has(id) || layouts_[id.layer].empty()) {
    return refused(PeerFetchRefused::Reason::kBad, "there is none");
  }
  const ExpertLayout& layout = layouts_[id.layer];
  const std::uint64_t total = layout.SlotBytes();
  if (fetch.offset >= total) return refused(PeerFetchRefused::Reason::kBad, "it ends before that");
  const auto use = held_.Find(id);
  if (!use) return refused(PeerFetchRefused::Reason::kNotHeld, "not held here");
  std::vector<std::byte> data(std::min<std::uint64_t>(piece_bytes_, total - fetch.offset));
  layout.CopySlot(use->weights(), fetch.offset, data);
  bytes_ += data.size();
  return Encode(PeerPiece{.id = fetch.id,
                          .expert = id,
                          .total = total,
                          .offset = fetch.offset,
                          .hash = checksum_of_(id).value_or(kNoHash),
                          .data = data});
}

}  // namespace troupe
