// In which pieces experts are read, and how many pieces of prefetches may be under way at once,
// from what is known of the medium: its latency and its speed by size of the request. Pure: what
// was measured comes in as a DiskCost, and who reads obeys the shape (store/expert_loader.h).
//
// Only what a probe measured counts, not what runs saw since: the shape must not change from one
// run to the next.
#pragma once

#include <cstdint>
#include <string>

#include "base/bytes.h"
#include "expert/flow/cost_model.h"

namespace troupe {

struct MediumFacts {
  DiskCost reads;  // of the medium, or of a link before it: DiskCost::Behind
  Bytes expert;    // of one load
  // How long whoever hands in reads may be away, computing.
  double away_seconds = 0;
};

struct ReadShape {
  Bytes piece = 1_MiB;             // of one read that somebody waits for
  Bytes prefetch_piece = 512_KiB;  // of one that demand may have to wait for
  std::uint32_t prefetch_reads = 3;

  Bytes ahead() const { return prefetch_reads * prefetch_piece; }
  bool operator==(const ReadShape&) const = default;
};

// A medium that gives nothing but a link's speed away.
DiskCost LinkAlone(double bytes_per_second, double latency_seconds);

// The share of a medium's speed that reads must reach: pieces are no smaller than that takes, and
// prefetches as many.
inline constexpr double kKeptSpeed = 0.9;
// A demand that finds the medium busy with prefetches waits for them no longer than this many
// loads of an expert, or as long as fewer prefetches would leave the medium below kKeptSpeed. Most
// of what is read ahead is what demand asks for next, so a medium without a pause is worth more
// than a short wait: at a quarter of a load decode fell to 0.76 to 0.82 of its speed (bench/heart
// speed).
inline constexpr double kMostWaitLoads = 2;

// ReadShape() if the medium was not measured.
ReadShape ShapeReads(const MediumFacts& medium);

// What a medium gives to this many reads of a size that are under way at once.
double SpeedAtDepth(const DiskCost& reads, Bytes piece, std::uint32_t depth);
// That a demand waits for prefetches at most, if all have just begun.
double MostWait(const MediumFacts& medium, const ReadShape& shape);
double MostWaitAllowed(const MediumFacts& medium);

// The shape and its reason, in a line.
std::string Describe(const MediumFacts& medium, const ReadShape& shape);

}  // namespace troupe
