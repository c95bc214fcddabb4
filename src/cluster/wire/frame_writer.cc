#include "cluster/wire/frame_writer.h"

#include <cmath>
#include <utility>

#include "base/check.h"
#include "cluster/wire/wire_text.h"

namespace troupe {

FrameWriter::FrameWriter(PeerMessageKind kind, std::size_t bytes) : bytes_(bytes) {
  frame_.reserve(bytes);
  Put(kind);
}

void FrameWriter::PutBytes(std::span<const std::byte> bytes) {
  TROUPE_CHECK(bytes.size() <= bytes_ - frame_.size());
  frame_.insert(frame_.end(), bytes.begin(), bytes.end());
}

void FrameWriter::PutMeasure(double value) {
  TROUPE_CHECK(std::isfinite(value) && value >= 0);
  Put(value + 0.0);  // not -0
}

void FrameWriter::PutPadding() { PutRoom(PaddedToFrame(frame_.size()) - frame_.size()); }

std::size_t FrameWriter::PutRoom(std::size_t bytes) {
  TROUPE_CHECK(bytes <= bytes_ - frame_.size());
  const std::size_t at = frame_.size();
  frame_.resize(at + bytes);
  return at;
}

void FrameWriter::PutName(std::string_view name) {
  TROUPE_CHECK(CheckPeerName("name", name).ok());
  PutText(name);
}

void FrameWriter::PutText(std::string_view text) {
  TROUPE_CHECK(IsPeerText(text));
  Put(static_cast<std::uint16_t>(text.size()));
  PutBytes(std::as_bytes(std::span(text)));
}

std::vector<std::byte> FrameWriter::Take() && {
  TROUPE_CHECK(frame_.size() == bytes_);
  return std::move(frame_);
}

}  // namespace troupe
