// T5's positions: a number for each head that is added to a score by how far the key is from the
// query. Distances share numbers in buckets: small ones have their own, further ones share them
// with more and more, up to a distance from which on all are alike.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

namespace troupe {

struct DistanceBuckets {
  std::uint32_t count = 0;         // of both directions together
  std::uint32_t max_distance = 0;  // from which on all are alike
  bool both_ways = false;          // keys may lie behind their query

  // Of a key at the query's position + distance; if keys lie before it alone, all behind it are
  // taken for the query's own.
  std::uint32_t Of(std::int64_t distance) const;
};

// Rows of `count` numbers, one a head, for the distances from `first` on. `table`: a row of heads a
// bucket.
void FillPositionBias(const DistanceBuckets& buckets, const float* table, std::uint32_t heads,
                      std::int64_t first, std::size_t count, std::span<float> out);

}  // namespace troupe
