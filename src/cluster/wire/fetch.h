// The weights of an expert from a peer that holds them: asked for from an offset, so that what was
// cut off is resumed, and given in pieces. Each piece has the hash of the whole expert, which the
// reader checks when it has all of them.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/status.h"
#include "expert/expert_id.h"

namespace troupe {

struct PeerFetch {
  std::uint64_t id = 0;
  ExpertId expert;
  std::uint64_t offset = 0;  // bytes that are there already

  bool operator==(const PeerFetch&) const = default;
};

// In place of a hash: the sender has none, and the reader's own tells whether the bytes are true.
inline constexpr std::uint64_t kNoHash = 0;

struct PeerPiece {
  std::uint64_t id = 0;
  ExpertId expert;
  std::uint64_t total = 0;   // bytes of the expert
  std::uint64_t offset = 0;  // of the first byte of `data` in it
  std::uint64_t hash = 0;    // XXH3-64 (seed 0) of all its bytes
  std::span<const std::byte> data;

  bool operator==(const PeerPiece& other) const;
};

struct PeerFetchRefused {
  enum class Reason : std::uint8_t {
    kBusy = 1,
    kNotHeld = 2,
    kBad = 3,  // no expert of the model, or an offset behind its end
    kStopping = 4,
  };
  std::uint64_t id = 0;
  Reason reason = Reason::kBusy;
  std::string text;

  bool operator==(const PeerFetchRefused&) const = default;
};

// Far above any model's. Who makes room for an expert knows its true size and compares.
inline constexpr std::uint64_t kMaxExpertBytes = std::uint64_t{1} << 34;

std::string_view ToString(PeerFetchRefused::Reason reason);
std::string ToString(const PeerFetch& fetch);
std::string ToString(const PeerPiece& piece);
std::string ToString(const PeerFetchRefused& refused);

std::vector<std::byte> Encode(const PeerFetch& fetch);
std::vector<std::byte> Encode(const PeerPiece& piece);
std::vector<std::byte> Encode(const PeerFetchRefused& refused);

Result<PeerFetch> DecodePeerFetch(std::span<const std::byte> frame);
// The piece shows the frame, which must outlive it.
Result<PeerPiece> DecodePeerPiece(std::span<const std::byte> frame);
Result<PeerFetchRefused> DecodePeerFetchRefused(std::span<const std::byte> frame);

}  // namespace troupe
