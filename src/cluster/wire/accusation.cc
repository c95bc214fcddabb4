#include "cluster/wire/accusation.h"

#include "cluster/wire/frame_reader.h"
#include "cluster/wire/frame_writer.h"

namespace troupe {

std::string ToString(const PeerAccusation& accusation) {
  return fmt::format("accusation: start {:016x} answered wrong rows of layer {}, expert {}",
                     accusation.accused, accusation.layer, accusation.expert);
}

std::vector<std::byte> Encode(const PeerAccusation& accusation) {
  FrameWriter out(PeerMessageKind::kAccusation, 1 + 8 + 4 + 4);
  out.Put(accusation.accused);
  out.Put(accusation.layer);
  out.Put(accusation.expert);
  return std::move(out).Take();
}

Result<PeerAccusation> DecodePeerAccusation(std::span<const std::byte> frame) {
  FrameReader in(PeerMessageKind::kAccusation, frame);
  PeerAccusation accusation;
  accusation.accused = in.Read<std::uint64_t>("accused");
  accusation.layer = in.Read<std::uint32_t>("layer");
  accusation.expert = in.Read<std::uint32_t>("expert");
  TROUPE_RETURN_IF_ERROR(in.Finish());
  return accusation;
}

}  // namespace troupe
