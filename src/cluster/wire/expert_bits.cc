#include "cluster/wire/expert_bits.h"

#include <bit>

#include "base/check.h"

namespace troupe {
namespace {

std::byte BitOf(std::size_t cell) { return std::byte{1} << static_cast<int>(cell % 8); }

}  // namespace

std::string ToString(ExpertGrid grid) {
  return fmt::format("{} layers of {} experts", grid.layers, grid.experts);
}

ExpertGrid ReadGrid(FrameReader& in) {
  ExpertGrid grid;
  grid.layers = in.Read<std::uint32_t>("layers");
  if (grid.layers < 1 || grid.layers > kMaxGridLayers) {
    in.Fail("{} found, 1 to {} expected", grid.layers, kMaxGridLayers);
  }
  grid.experts = in.Read<std::uint32_t>("experts of a layer");
  if (grid.experts < 1 || grid.experts > kMaxGridExperts) {
    in.Fail("{} found, 1 to {} expected", grid.experts, kMaxGridExperts);
  }
  if (grid.Count() > kMaxGridCells) {
    in.Fail("{} found, at most {} in all layers expected", ToString(grid), kMaxGridCells);
  }
  return in.ok() ? grid : ExpertGrid{};
}

void PutGrid(FrameWriter& out, ExpertGrid grid) {
  TROUPE_CHECK(grid.layers <= kMaxGridLayers && grid.experts <= kMaxGridExperts);
  TROUPE_CHECK(grid.Count() >= 1 && grid.Count() <= kMaxGridCells);
  out.Put(grid.layers);
  out.Put(grid.experts);
}

bool ExpertBits::Has(ExpertId id) const {
  if (!grid_.Has(id)) return false;
  const std::size_t cell = grid_.Index(id);
  return (bytes_[cell / 8] & BitOf(cell)) != std::byte{0};
}

void ExpertBits::Add(ExpertId id) {
  TROUPE_CHECK(grid_.Has(id));
  const std::size_t cell = grid_.Index(id);
  bytes_[cell / 8] |= BitOf(cell);
}

std::size_t ExpertBits::size() const {
  std::size_t count = 0;
  for (const std::byte b : bytes_) {
    count += static_cast<std::size_t>(std::popcount(std::to_integer<unsigned>(b)));
  }
  return count;
}

ExpertBits ReadExpertBits(FrameReader& in) {
  const ExpertGrid grid = ReadGrid(in);
  const auto bytes = in.ReadBytes(ExpertBits::BytesFor(grid), "bits of experts");
  if (!in.ok()) return ExpertBits();
  const std::size_t used = grid.Count() % 8;
  if (used != 0 && std::to_integer<unsigned>(bytes.back()) >> used != 0) {
    in.Fail("a bit behind that of the last expert found, {} bits expected", grid.Count());
    return ExpertBits();
  }
  ExpertBits bits;
  bits.grid_ = grid;
  bits.bytes_.assign(bytes.begin(), bytes.end());
  return bits;
}

}  // namespace troupe
