#include "cluster/wire/fetch.h"

#include <algorithm>

#include "cluster/wire/frame_reader.h"
#include "cluster/wire/frame_writer.h"
#include "cluster/wire/wire_text.h"

namespace troupe {
namespace {

constexpr std::size_t kExpertIdBytes = 2 * sizeof(std::uint32_t);
constexpr std::size_t kFetchBytes = 1 + 8 + kExpertIdBytes + 8;
constexpr std::size_t kPieceBytes = kFetchBytes + 8 + 8;

ExpertId ReadExpertId(FrameReader& in) {
  ExpertId id;
  id.layer = in.Read<std::uint32_t>("layer");
  id.expert = in.Read<std::uint32_t>("expert");
  return id;
}

void PutExpertId(FrameWriter& out, ExpertId id) {
  out.Put(id.layer);
  out.Put(id.expert);
}

bool IsPiece(std::uint64_t total, std::uint64_t offset, std::size_t bytes) {
  return total <= kMaxExpertBytes && offset < total && bytes >= 1 && bytes <= total - offset;
}

}  // namespace

bool PeerPiece::operator==(const PeerPiece& other) const {
  return id == other.id && expert == other.expert && total == other.total &&
         offset == other.offset && hash == other.hash && std::ranges::equal(data, other.data);
}

std::string_view ToString(PeerFetchRefused::Reason reason) {
  switch (reason) {
    case PeerFetchRefused::Reason::kBusy:
      return "busy";
    case PeerFetchRefused::Reason::kNotHeld:
      return "not held";
    case PeerFetchRefused::Reason::kBad:
      return "bad";
    case PeerFetchRefused::Reason::kStopping:
      return "stopping";
  }
  return "unknown";
}

std::string ToString(const PeerFetch& fetch) {
  return fmt::format("fetch {}: {}, from byte {}", fetch.id, ToString(fetch.expert), fetch.offset);
}

std::string ToString(const PeerPiece& piece) {
  return fmt::format("piece of fetch {}: {}, {} bytes at {} of {}, hash {:016x}", piece.id,
                     ToString(piece.expert), piece.data.size(), piece.offset, piece.total,
                     piece.hash);
}

std::string ToString(const PeerFetchRefused& refused) {
  return fmt::format("fetch {} refused: {}: {}", refused.id, ToString(refused.reason),
                     refused.text);
}

std::vector<std::byte> Encode(const PeerFetch& fetch) {
  FrameWriter out(PeerMessageKind::kFetch, kFetchBytes);
  out.Put(fetch.id);
  PutExpertId(out, fetch.expert);
  out.Put(fetch.offset);
  return std::move(out).Take();
}

std::vector<std::byte> Encode(const PeerPiece& piece) {
  TROUPE_CHECK(IsPiece(piece.total, piece.offset, piece.data.size()));
  FrameWriter out(PeerMessageKind::kPiece, kPieceBytes + piece.data.size());
  out.Put(piece.id);
  PutExpertId(out, piece.expert);
  out.Put(piece.total);
  out.Put(piece.offset);
  out.Put(piece.hash);
  out.PutBytes(piece.data);
  return std::move(out).Take();
}

std::vector<std::byte> Encode(const PeerFetchRefused& refused) {
  const std::string text = AsPeerText(refused.text);
  FrameWriter out(PeerMessageKind::kFetchRefused, 2 + 8 + TextBytes(text));
  out.Put(refused.reason);
  out.Put(refused.id);
  out.PutText(text);
  return std::move(out).Take();
}

Result<PeerFetch> DecodePeerFetch(std::span<const std::byte> frame) {
  FrameReader in(PeerMessageKind::kFetch, frame);
  PeerFetch fetch;
  fetch.id = in.Read<std::uint64_t>("fetch");
  fetch.expert = ReadExpertId(in);
  fetch.offset = in.Read<std::uint64_t>("offset");
  TROUPE_RETURN_IF_ERROR(in.Finish());
  return fetch;
}

Result<PeerPiece> DecodePeerPiece(std::span<const std::byte> frame) {
  FrameReader in(PeerMessageKind::kPiece, frame);
  PeerPiece piece;
  piece.id = in.Read<std::uint64_t>("fetch");
  piece.expert = ReadExpertId(in);
  piece.total = in.Read<std::uint64_t>("total");
  if (piece.total < 1 || piece.total > kMaxExpertBytes) {
    in.Fail("{} bytes found, 1 to {} expected", piece.total, kMaxExpertBytes);
  }
  piece.offset = in.Read<std::uint64_t>("offset");
  if (piece.offset >= piece.total) {
    in.Fail("{} found, below {} expected", piece.offset, piece.total);
  }
  piece.hash = in.Read<std::uint64_t>("hash");
  piece.data = in.ReadRest("data");
  if (piece.data.empty() || piece.data.size() > piece.total - piece.offset) {
    in.Fail("{} bytes found, 1 to {} expected", piece.data.size(), piece.total - piece.offset);
  }
  TROUPE_RETURN_IF_ERROR(in.Finish());
  return piece;
}

Result<PeerFetchRefused> DecodePeerFetchRefused(std::span<const std::byte> frame) {
  using Reason = PeerFetchRefused::Reason;
  FrameReader in(PeerMessageKind::kFetchRefused, frame);
  PeerFetchRefused refused;
  refused.reason = in.ReadEnum("reason", Reason::kBusy, Reason::kStopping);
  refused.id = in.Read<std::uint64_t>("fetch");
  refused.text = in.ReadText("text");
  TROUPE_RETURN_IF_ERROR(in.Finish());
  return refused;
}

}  // namespace troupe
