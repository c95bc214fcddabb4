#include "expert/flow/medium.h"

#include <fmt/core.h>

#include <algorithm>
#include <cmath>

#include "base/check.h"

namespace troupe {
namespace {

constexpr Bytes kPage = 4_KiB;  // direct reads are multiples of it
// Each request costs some microseconds of a processor that has experts to compute, and its end is
// noticed when the next expert has been computed. Pieces of prefetches take the medium several
// times as long as that, unless they would keep demand waiting.
constexpr double kPieceSeconds = 250e-6;
constexpr Bytes kUsualLeast = 64_KiB;
constexpr std::uint32_t kMostReads = 32;  // of prefetches: demand needs room in the queue, too
// Beyond latency x speed, since requests do not end at even distances.
constexpr double kMargin = 1.25;
// A size other than the usual one must load an expert this much faster.
constexpr double kClearlyFaster = 0.95;

double InBytes(Bytes bytes) { return static_cast<double>(bytes.count()); }

std::uint32_t AsReads(double reads) {
  return static_cast<std::uint32_t>(std::clamp(reads, 1.0, double{kMostReads}));
}

RunningMean Exactly(double value) { return {.value = value, .samples = 1}; }

// A larger read is no faster alone and no slower in a full queue than a smaller one: where a probe
// says so, something else used the medium meanwhile.
DiskCost AsProbed(const DiskCost& measured) {
  DiskCost probed = measured;
  double speed = 0, alone = 0;
  for (ReadCost& read : probed.reads) {
    read.in_runs = {};
    speed = std::max(speed, read.bytes_per_second.value);
    alone = std::max(alone, read.lone_seconds.value);
    if (read.bytes_per_second.measured()) read.bytes_per_second = Exactly(speed);
    if (read.lone_seconds.measured()) read.lone_seconds = Exactly(alone);
  }
  return probed;
}

// Sizes of pieces to choose from, rising: no larger than what was measured, nor than an expert.
std::vector<Bytes> Sizes(const MediumFacts& medium) {
  const Bytes expert(AlignUp(std::max<std::uint64_t>(medium.expert.count(), 1), kPage.count()));
  const Bytes most = std::min(std::max(medium.reads.reads.back().request, kPage), expert);
  std::vector<Bytes> sizes;
  for (Bytes size = kPage; size < most; size = 2 * size) sizes.push_back(size);
  sizes.push_back(Bytes(most.count() & ~(kPage.count() - 1)));
  return sizes;
}

// What it gives to reads of any of these sizes.
double BestSpeed(const DiskCost& reads, const std::vector<Bytes>& sizes) {
  double best = 0;
  for (const Bytes size : sizes) best = std::max(best, reads.BytesPerSecond(size));
  return best;
}

// The number of reads of a size under way at once that it takes to reach a speed.
double ReadsFor(const DiskCost& reads, Bytes piece, double bytes_per_second) {
  return std::ceil(bytes_per_second * reads.LoneSeconds(piece) / InBytes(piece));
}

double LoadSeconds(const DiskCost& reads, Bytes expert, Bytes piece) {
  return reads.SecondsToLoad({.bytes = expert, .piece = piece});
}

// The smallest size at which kMostReads under way at once reach kKeptSpeed.
Bytes LeastPiece(const DiskCost& reads, const std::vector<Bytes>& sizes) {
  const double enough = kKeptSpeed * BestSpeed(reads, sizes);
  const auto least = std::ranges::find_if(
      sizes, [&](Bytes size) { return SpeedAtDepth(reads, size, kMostReads) >= enough; });
  return least == sizes.end() ? sizes.back() : *least;
}

// The usual one on this medium, if demand could wait for it.
Bytes UsualPrefetchPiece(const DiskCost& reads, const std::vector<Bytes>& sizes, Bytes least) {
  const auto usual = std::ranges::find_if(sizes, [&](Bytes size) {
    return InBytes(size) >= kPieceSeconds * reads.BytesPerSecond(size);
  });
  const Bytes found = usual == sizes.end() ? sizes.back() : *usual;
  return std::max(least, std::clamp(found, kUsualLeast, ReadShape().prefetch_piece));
}

Bytes DemandPiece(const DiskCost& reads, Bytes expert, const std::vector<Bytes>& sizes,
                  Bytes least) {
  const Bytes usual = std::clamp(ReadShape().piece, least, sizes.back());
  Bytes best = usual;
  for (const Bytes size : sizes) {
    if (size < least) continue;
    if (LoadSeconds(reads, expert, size) < LoadSeconds(reads, expert, best)) best = size;
  }
  const bool clearly =
      LoadSeconds(reads, expert, best) < kClearlyFaster * LoadSeconds(reads, expert, usual);
  return clearly ? best : usual;
}

}  // namespace

DiskCost LinkAlone(double bytes_per_second, double latency_seconds) {
  TROUPE_CHECK(bytes_per_second > 0);
  DiskCost link;
  for (Bytes size = kPage; size <= 4_MiB; size = 2 * size) {
    ReadCost read;
    read.request = size;
    read.lone_seconds.Note(latency_seconds + InBytes(size) / bytes_per_second);
    read.bytes_per_second.Note(bytes_per_second);
    link.reads.push_back(read);
  }
  return link;
}

double SpeedAtDepth(const DiskCost& reads, Bytes piece, std::uint32_t depth) {
  return std::min(reads.BytesPerSecond(piece), depth * InBytes(piece) / reads.LoneSeconds(piece));
}

double MostWait(const MediumFacts& medium, const ReadShape& shape) {
  return InBytes(shape.ahead()) / AsProbed(medium.reads).BytesPerSecond(shape.prefetch_piece);
}

double MostWaitAllowed(const MediumFacts& medium) {
  const DiskCost reads = AsProbed(medium.reads);
  const std::vector<Bytes> sizes = Sizes(medium);
  const Bytes least = LeastPiece(reads, sizes);
  const double busy = AsReads(ReadsFor(reads, least, kKeptSpeed * BestSpeed(reads, sizes))) *
                      InBytes(least) / reads.BytesPerSecond(least);
  return std::max(busy, kMostWaitLoads * LoadSeconds(reads, medium.expert, least));
}

ReadShape ShapeReads(const MediumFacts& medium) {
  ReadShape shape;
  if (!medium.reads.measured() || medium.expert == Bytes()) return shape;
  const DiskCost reads = AsProbed(medium.reads);
  const std::vector<Bytes> sizes = Sizes(medium);
  const Bytes least = LeastPiece(reads, sizes);
  const double best = BestSpeed(reads, sizes);
  if (best <= 0) return shape;
  const double most_wait = MostWaitAllowed(medium);
  const auto allowed = [&](Bytes piece) {  // reads under way
    const double passed = most_wait * reads.BytesPerSecond(piece) / InBytes(piece);
    return std::min(std::floor(passed * (1 + 1e-9)), double{kMostReads});
  };

  // The largest piece, up to the usual one, of which enough reads are allowed: two at least, so
  // that one passes while the other's end is noticed. Else the smallest there may be.
  shape.prefetch_piece = least;
  shape.prefetch_reads = AsReads(std::min(allowed(least), ReadsFor(reads, least, kMargin * best)));
  const Bytes usual = UsualPrefetchPiece(reads, sizes, least);
  bool enough = false;
  for (const Bytes size : sizes) {
    if (size < least) continue;
    // Larger than usual only where too many would have to be under way.
    if (size > usual && (enough || size > ReadShape().piece)) break;
    const double fill = std::max(2.0, ReadsFor(reads, size, kMargin * best));
    if (fill > allowed(size)) continue;
    const double away = std::ceil(medium.away_seconds * reads.BytesPerSecond(size) / InBytes(size));
    shape.prefetch_piece = size;
    shape.prefetch_reads = AsReads(std::min(allowed(size), fill + away));
    enough = fill + away <= kMostReads;
  }
  shape.piece = DemandPiece(reads, medium.expert, sizes, shape.prefetch_piece);
  return shape;
}

std::string Describe(const MediumFacts& medium, const ReadShape& shape) {
  const std::string reads = fmt::format("reads of {}; ahead {} of {}", ToString(shape.piece),
                                        shape.prefetch_reads, ToString(shape.prefetch_piece));
  if (!medium.reads.measured()) {
    return reads + ": nothing was measured of the medium (`troupe probe MODEL` does)";
  }
  const DiskCost probed = AsProbed(medium.reads);
  const double full = BestSpeed(probed, Sizes(medium));
  return fmt::format(
      "{}: {:.0f} % of a medium of {}/s and {:.0f} us, and demand waits {:.2f} ms for them at most",
      reads, 100 * SpeedAtDepth(probed, shape.prefetch_piece, shape.prefetch_reads) / full,
      ToString(Bytes(static_cast<std::uint64_t>(full))), 1e6 * probed.LoneSeconds(kPage),
      1e3 * MostWait(medium, shape));
}

}  // namespace troupe
