// What `troupe bench` measured, as tables and as the record of --json.
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <vector>

#include "base/bytes.h"
#include "base/json.h"
#include "troupe/bench_batch.h"
#include "troupe/bench_join.h"

namespace troupe {

// Of one sequence.
struct LoneSpeed {
  std::size_t prompt = 0;  // tokens in the cache before
  std::size_t tokens = 0;  // tokens that were timed
  std::vector<double> per_second;
};

struct BenchFigures {
  std::string model;
  std::uint32_t threads = 1;
  double load_seconds = 0;
  Bytes touched_per_token;
  Bytes budget;
  Bytes peak;             // before the memory's speed was measured
  Bytes peak_with_probe;  // of the whole process
  Bytes probe;            // the buffer that the memory's speed was measured with
  double memory_bytes_per_s = 0;
  std::vector<LoneSpeed> prefill, decode;
  std::vector<BatchSpeed> together;
  std::optional<JoinTimes> join;
  std::size_t joined_prompt = 0;
};

void PrintBench(const BenchFigures& figures);
Json BenchRecord(const BenchFigures& figures);

}  // namespace troupe
