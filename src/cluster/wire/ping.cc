#include "cluster/wire/ping.h"

#include "cluster/wire/frame_reader.h"
#include "cluster/wire/frame_writer.h"

namespace troupe {

std::string ToString(const PeerPing& ping) { return fmt::format("ping {}", ping.token); }

std::string ToString(const PeerPong& pong) {
  return fmt::format("pong {}: {} waiting", pong.token, pong.waiting);
}

std::vector<std::byte> Encode(const PeerPing& ping) {
  FrameWriter out(PeerMessageKind::kPing, 1 + 8);
  out.Put(ping.token);
  return std::move(out).Take();
}

std::vector<std::byte> Encode(const PeerPong& pong) {
  FrameWriter out(PeerMessageKind::kPong, 1 + 8 + 4);
  out.Put(pong.token);
  out.Put(pong.waiting);
  return std::move(out).Take();
}

Result<PeerPing> DecodePeerPing(std::span<const std::byte> frame) {
  FrameReader in(PeerMessageKind::kPing, frame);
  const PeerPing ping{.token = in.Read<std::uint64_t>("token")};
  TROUPE_RETURN_IF_ERROR(in.Finish());
  return ping;
}

Result<PeerPong> DecodePeerPong(std::span<const std::byte> frame) {
  FrameReader in(PeerMessageKind::kPong, frame);
  PeerPong pong;
  pong.token = in.Read<std::uint64_t>("token");
  pong.waiting = in.Read<std::uint32_t>("calls waiting");
  TROUPE_RETURN_IF_ERROR(in.Finish());
  return pong;
}

}  // namespace troupe
