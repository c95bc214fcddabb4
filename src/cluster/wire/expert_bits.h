// How many layers and experts a model has, as far as messages tell of every expert of it: how many
// bits or counts that takes, and some of a model's experts as bits.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "cluster/wire/frame_reader.h"
#include "expert/expert_grid.h"
#include "expert/expert_id.h"

namespace troupe {

// Far above any model's; they bound what a report can make its reader allocate.
inline constexpr std::uint32_t kMaxGridLayers = 4096;
inline constexpr std::uint32_t kMaxGridExperts = 65536;
inline constexpr std::size_t kMaxGridCells = std::size_t{1} << 20;

std::string ToString(ExpertGrid grid);  // "48 layers of 128 experts"

// 1 to the limits above of each; 8 bytes of a frame.
inline constexpr std::size_t kGridBytes = 2 * sizeof(std::uint32_t);
ExpertGrid ReadGrid(FrameReader& in);
void PutGrid(FrameWriter& out, ExpertGrid grid);

// Some of a model's experts: a bit for each, at its cell's index, the lowest bit of a byte first.
class ExpertBits {
 public:
  ExpertBits() = default;  // of no model
  explicit ExpertBits(ExpertGrid grid) : grid_(grid), bytes_(BytesFor(grid)) {}

  static std::size_t BytesFor(ExpertGrid grid) { return (grid.Count() + 7) / 8; }

  ExpertGrid grid() const { return grid_; }
  bool Has(ExpertId id) const;  // false for those outside the grid
  void Add(ExpertId id);        // one within the grid
  std::size_t size() const;     // how many there are
  std::span<const std::byte> bytes() const { return bytes_; }

  bool operator==(const ExpertBits&) const = default;

 private:
  friend ExpertBits ReadExpertBits(FrameReader& in);

  ExpertGrid grid_;
  std::vector<std::byte> bytes_;
};

// The grid, then the bits; bits behind the last expert's must be zero.
ExpertBits ReadExpertBits(FrameReader& in);

}  // namespace troupe
