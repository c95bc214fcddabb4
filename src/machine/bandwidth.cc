#include "machine/bandwidth.h"

#include <algorithm>
#include <atomic>
#include <cstring>

#include "base/clock.h"
#include "io/aligned_buffer.h"
#include "kernels/read_sum.h"

namespace troupe {

Result<double> MeasureReadBandwidth(ThreadPool& pool, Bytes size) {
  constexpr std::size_t kPieceBytes = 256 << 10;
  constexpr int kPasses = 6;
  const std::size_t pieces = std::max<std::size_t>(1, size.count() / kPieceBytes);
  TROUPE_ASSIGN_OR_RETURN(AlignedBuffer buffer,
                          AlignedBuffer::Allocate(Bytes(pieces * kPieceBytes),
                                                  {.alignment = kHugePage, .huge_pages = true}));
  std::memset(buffer.data(), 1, buffer.size().count());  // real pages, not the shared zero page
  std::atomic<std::uint64_t> sum{0};
  double best = 0;
  for (int pass = 0; pass < kPasses; ++pass) {
    const Stopwatch watch;
    pool.Run(pieces, [&](std::size_t piece, std::size_t) {
      sum.fetch_add(ReadSum(buffer.data() + piece * kPieceBytes, kPieceBytes),
                    std::memory_order_relaxed);
    });
    best = std::max(best, static_cast<double>(buffer.size().count()) / watch.Seconds());
  }
  const std::uint64_t words = pieces * kPieceBytes / 8;
  TROUPE_CHECK(sum.load() == kPasses * words * 0x0101010101010101u);
  return best;
}

}  // namespace troupe
