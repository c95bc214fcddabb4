#include "cluster/wire/holdings.h"

#include "cluster/wire/frame_reader.h"
#include "cluster/wire/frame_writer.h"

namespace troupe {

std::string ToString(const PeerHoldings& holdings) {
  return fmt::format("holdings {}: {} experts of {}, plan {}", holdings.sequence,
                     holdings.held.size(), ToString(holdings.held.grid()), holdings.epoch);
}

std::vector<std::byte> Encode(const PeerHoldings& holdings) {
  const std::span<const std::byte> bits = holdings.held.bytes();
  FrameWriter out(PeerMessageKind::kHoldings, 1 + 8 + 8 + kGridBytes + bits.size());
  out.Put(holdings.epoch);
  out.Put(holdings.sequence);
  PutGrid(out, holdings.held.grid());
  out.PutBytes(bits);
  return std::move(out).Take();
}

Result<PeerHoldings> DecodePeerHoldings(std::span<const std::byte> frame) {
  FrameReader in(PeerMessageKind::kHoldings, frame);
  PeerHoldings holdings;
  holdings.epoch = in.Read<std::uint64_t>("epoch");
  holdings.sequence = in.Read<std::uint64_t>("sequence number");
  holdings.held = ReadExpertBits(in);
  TROUPE_RETURN_IF_ERROR(in.Finish());
  return holdings;
}

}  // namespace troupe
