// The experts container (docs/formats/experts.md) as values and bytes: header, index, checksums.
// container_writer.h writes one, container_store.h reads experts from one.
//
// A container belongs to one model and holds its experts in the form of memory slots: each
// contiguous, on a 4 KiB boundary, in the order of layers, with a checksum. It may hold a second
// copy of all of them at a lower precision.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

#include "base/bytes.h"
#include "base/status.h"
#include "base/tensor_type.h"
#include "io/byte_source.h"
#include "store/model_fingerprint.h"

namespace troupe {

inline constexpr std::uint32_t kContainerVersion = 1;
inline constexpr std::uint64_t kContainerAlignment = 4096;

// Far above any model's; they bound what a hostile file can make the reader allocate.
inline constexpr std::uint32_t kMaxContainerLayers = 4096;
inline constexpr std::uint32_t kMaxContainerExperts = 65536;
inline constexpr Bytes kMaxContainerIndexBytes = 64_MiB;

// The end of an error about an unusable container.
inline constexpr std::string_view kPackAgain = "`troupe pack MODEL` makes it anew";

// Types of the gate, up and down matrices of a layer's experts in one precision.
using ExpertTypes = std::array<TensorType, 3>;

struct ContainerLayer {
  std::uint32_t layer = 0;
  ExpertTypes types = {};
  std::uint64_t expert_bytes = 0;        // in use; see Stride
  std::uint64_t offset = 0;              // of expert 0
  std::vector<std::uint64_t> checksums;  // of each expert's bytes in use, padding excluded

  // Bytes from one expert to the next.
  std::uint64_t Stride() const { return AlignUp(expert_bytes, kContainerAlignment); }
  std::uint64_t OffsetOf(std::uint32_t expert) const { return offset + expert * Stride(); }

  bool operator==(const ContainerLayer&) const = default;
};

struct ContainerIndex {
  ModelFingerprint model;
  std::uint32_t panel_layout = 0;  // quant/panel.h's; a change there makes old containers useless
  std::uint32_t experts = 0;       // a layer
  // One or two precisions: as the model has them, and the lower one. Layers without experts are
  // left out; both precisions have the same layers.
  std::vector<std::vector<ContainerLayer>> precisions;

  bool operator==(const ContainerIndex&) const = default;
};

// XXH3-64, of experts and of the index.
std::uint64_t ContainerChecksum(std::span<const std::byte> bytes);

// Offset of the first expert: the header and the index, rounded up to 4 KiB.
std::uint64_t ContainerDataOffset(const ContainerIndex& index);
// Gives every layer the one offset it may have: experts follow each other without gaps, in the
// order of precisions and layers. Returns the size of the file.
std::uint64_t PlaceExperts(ContainerIndex& index);

// The file's first ContainerDataOffset() bytes, sealed, of an index that was placed.
std::vector<std::byte> EncodeContainerIndex(const ContainerIndex& index);
// Writes the checksum of these first bytes of a file into its place among them.
void SealContainerIndex(std::span<std::byte> front);

// Trusts nothing: what it returns has sane counts, known types, and experts where PlaceExperts puts
// them, all inside the file. Errors name the file, the place, what was found and what was expected.
Result<ContainerIndex> ReadContainerIndex(const ByteSource& file);

}  // namespace troupe
