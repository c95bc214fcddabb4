#include "cluster/wire/frame_reader.h"

#include <algorithm>
#include <cmath>

#include "cluster/wire/wire_text.h"

namespace troupe {

FrameReader::FrameReader(PeerMessageKind kind, std::span<const std::byte> frame)
    : message_(ToString(kind)), frame_(frame) {
  const auto found = Read<std::uint8_t>("kind");
  const auto expected = static_cast<std::uint8_t>(kind);
  if (found != expected) Fail("{} found, {} expected", found, expected);
}

bool FrameReader::ReadFlag(std::string_view field) {
  const auto found = Read<std::uint8_t>(field);
  if (found > 1) Fail("{} found, 0 or 1 expected", found);
  return ok() && found == 1;
}

double FrameReader::ReadMeasure(std::string_view field) {
  const auto found = Read<double>(field);
  if (!std::isfinite(found) || std::signbit(found)) {
    Fail("{} found, a finite number not below 0 expected", found);
  }
  return ok() ? found : 0;
}

std::string FrameReader::ReadName(std::string_view field) {
  const std::size_t at = position_;
  const auto bytes = ReadBytes(Read<std::uint16_t>(field), field);
  field_at_ = at;
  std::string name(reinterpret_cast<const char*>(bytes.data()), bytes.size());
  if (!ok()) return {};
  if (const Status fit = CheckPeerName(field, name); !fit.ok()) {
    status_ = DataLoss("{}, byte {}: {}", message_, field_at_, fit.message());
    return {};
  }
  return name;
}

std::string FrameReader::ReadText(std::string_view field) {
  const std::size_t at = position_;
  const auto bytes = ReadBytes(Read<std::uint16_t>(field), field);
  field_at_ = at;
  const std::string_view text(reinterpret_cast<const char*>(bytes.data()), bytes.size());
  if (!IsPeerText(text)) {
    Fail("{} bytes found, at most {} without control characters expected", text.size(),
         kMaxPeerTextBytes);
  }
  return ok() ? std::string(text) : std::string();
}

std::span<const std::byte> FrameReader::ReadBytes(std::uint64_t bytes, std::string_view field) {
  if (!ok()) return {};
  field_ = field;
  field_at_ = position_;
  if (bytes > remaining()) {
    Fail("{} bytes found, {} expected", remaining(), bytes);
    return {};
  }
  position_ += bytes;
  return frame_.subspan(field_at_, bytes);
}

std::span<const std::byte> FrameReader::ReadRest(std::string_view field) {
  return ReadBytes(remaining(), field);
}

void FrameReader::ReadPadding() {
  const auto zeros = ReadBytes(PaddedToFrame(position_) - position_, "padding");
  const auto bad = std::ranges::find_if(zeros, [](std::byte b) { return b != std::byte{0}; });
  if (bad != zeros.end()) Fail("{:#04x} found, 0 expected", std::to_integer<unsigned>(*bad));
}

Status FrameReader::Finish() {
  if (ok() && remaining() > 0) {
    field_ = "end";
    field_at_ = position_;
    Fail("{} more bytes found, 0 expected", remaining());
  }
  return status_;
}

void FrameReader::FailWith(std::string_view fault) {
  status_ = DataLoss("{}, byte {}: {}: {}", message_, field_at_, field_, fault);
}

}  // namespace troupe
