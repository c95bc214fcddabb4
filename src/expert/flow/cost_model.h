// What loading and computing an expert cost on this machine, as means of measurements: the disk's
// answer to requests of several sizes, the speed of memory, the time of an expert by its shape.
// A value without clock or file: who measures calls Note (machine/probe.h), who saves it reads the
// members (machine/cost_model_file.h), who plans asks for seconds (speed_estimate.h).
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/bytes.h"

namespace troupe {

// A mean that follows what it is told: the first samples weigh alike, each later one a sixteenth,
// so that a machine that became slower is known as slower after some tens of runs.
struct RunningMean {
  static constexpr std::uint32_t kMemory = 16;

  double value = 0;
  std::uint32_t samples = 0;

  bool measured() const { return samples > 0; }
  // A sample that is no time and no speed (zero, negative, not finite) is none.
  void Note(double sample);
  bool operator==(const RunningMean&) const = default;
};

// Requests of one size.
struct ReadCost {
  Bytes request;
  RunningMean lone_seconds;      // with nothing else under way
  RunningMean bytes_per_second;  // with the queue full
  // What runs saw while they loaded experts with such requests: the queue as full as a run fills
  // it, the processors as busy as a run keeps them. Counts for more than the probe.
  RunningMean in_runs;

  double Rate() const { return (in_runs.measured() ? in_runs : bytes_per_second).value; }
  bool operator==(const ReadCost&) const = default;
};

// How an expert comes from the disk.
struct LoadShape {
  Bytes bytes;                // that are read
  std::uint32_t extents = 1;  // places they lie in
  Bytes piece = 1_MiB;        // that requests are cut into

  // The usual request.
  Bytes Request() const;
};

struct DiskCost {
  bool direct = true;           // reads went past the page cache
  std::vector<ReadCost> reads;  // by rising size of the request; empty: not measured

  bool measured() const { return !reads.empty(); }
  // Interpolated between sizes that were measured; beyond them the nearest one's. Measured only.
  double LoneSeconds(Bytes request) const;
  double BytesPerSecond(Bytes request) const;
  // One load with nothing else under way: all its requests at once.
  double SecondsToLoad(const LoadShape& load) const;
  // Its share of the time while many loads are under way.
  double SecondsToStream(const LoadShape& load) const;

  // A run read `bytes` in `reads` requests while `seconds` passed with at least one under way.
  // Says nothing, and changes nothing, if that was too little or the disk was never probed.
  void NoteRun(Bytes bytes, std::uint64_t reads, double seconds);
  // The same disk behind a slower link (io/throttled_reader.h); no limit if 0.
  DiskCost Behind(double bytes_per_second, double latency_seconds) const;

  bool operator==(const DiskCost&) const = default;
};

// Experts of one shape, computed a few at a time by all threads; per expert.
struct ExpertCost {
  std::string shape;  // "Q4_K 1408x2048, Q4_K 1408x2048, Q6_K 2048x1408": gate, up, down
  RunningMean first_row;
  RunningMean further_row;

  bool operator==(const ExpertCost&) const = default;
};

// For one number of threads and one disk.
struct CostModel {
  RunningMean memory_bytes_per_second;
  std::vector<ExpertCost> experts;
  DiskCost disk;

  const ExpertCost* Find(std::string_view shape) const;  // null: not measured
  void NoteExpert(std::string_view shape, double first_row_seconds, double further_row_seconds);

  // For an expert of that shape and size. One that was not measured is taken to be read from memory
  // once a row, which is too much for many rows. Nothing if memory was not measured either.
  std::optional<double> SecondsToRun(std::string_view shape, Bytes bytes, double rows) const;

  bool operator==(const CostModel&) const = default;
};

}  // namespace troupe
