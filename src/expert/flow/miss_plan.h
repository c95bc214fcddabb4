// What a planner of misses is told of a layer (LayerMisses) and what it decides (MissPlan), as
// values: what is measured of the medium, of this processor and of the other places, what may be
// lost, and one answer for each missing expert. Who decides is miss_planner.h; who obeys is whoever
// asked.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/bytes.h"

namespace troupe {

enum class MissAnswer : std::uint8_t {
  kWait,        // for a load that is under way
  kLoad,        // in full
  kLoadLow,     // its low-bit copy
  kElsewhere,   // a place computes it: a peer that holds it, or a second lane of this machine
  kSubstitute,  // a resident expert answers its rows
  kDrop,        // nothing does
};

std::string_view Name(MissAnswer answer);

// An expert that a layer needs and memory does not hold. A price is what answering one row so costs
// in quality, in the caller's unit; without one that answer is impossible.
struct Miss {
  std::uint32_t expert = 0;
  std::uint32_t rows = 1;  // that need it
  double weight = 0;       // the largest that the router gave it
  Bytes full;              // to read; none: it cannot be loaded here
  Bytes low;               // of its low copy; none: there is no such copy
  // Bytes that have not come yet of a load under way, in a copy that may answer.
  std::optional<Bytes> loading;
  std::span<const std::uint32_t> places;  // that could compute it, as indices
  std::optional<double> low_price, substitute_price, drop_price;
};

// What experts are loaded from. Loads pass it one after the other, in the order of the plan, after
// what it has to do already; each takes its latency besides.
struct MediumState {
  double latency_seconds = 0;
  double bytes_per_second = 0;  // 0: not measured
  // Under way and ahead of this layer's loads, without those of its misses that are loading.
  Bytes queued;

  bool measured() const { return bytes_per_second > 0; }
};

// Where an expert can be computed without loading it. One after the other, after `queued_seconds`
// of other work; `latency_seconds` is there and back, whatever is sent.
struct Place {
  std::string_view name;
  double latency_seconds = 0;
  double expert_seconds = 0;  // once an expert
  double row_seconds = 0;     // each of its rows besides
  double queued_seconds = 0;

  // Only a place of which something is known is asked of its own accord.
  bool measured() const { return latency_seconds > 0 || expert_seconds > 0 || row_seconds > 0; }
  double SecondsFor(std::uint32_t rows) const { return expert_seconds + rows * row_seconds; }
};

// What this processor computes experts in; seconds of nothing where that was not measured.
struct LocalWork {
  double busy_seconds = 0;  // with the layer's resident experts
  double first_row_seconds = 0;
  double further_row_seconds = 0;

  double SecondsFor(std::uint32_t rows) const {
    return rows == 0 ? 0 : first_row_seconds + (rows - 1) * further_row_seconds;
  }
};

struct LossBudget {
  double row_price = 0;          // that a row may cost, at most; 0: exact answers only
  double seconds_per_price = 0;  // that the layer must end sooner by to be worth a price of 1

  bool exact() const { return row_price <= 0; }
};

// Which misses are the best ones: loaded first, and given to another place last.
enum class MissOrder : std::uint8_t {
  kRows,    // the most rows, then the largest weight
  kWeight,  // the largest weight alone
};

struct LayerMisses {
  std::span<const Miss> misses;
  std::span<const Place> places;
  MediumState medium;
  LocalWork local;
  LossBudget loss;
  MissOrder order = MissOrder::kRows;
};

enum class MissReason : std::uint8_t {
  kOnlyAnswer,   // that is possible and allowed
  kNotMeasured,  // so that nothing can be weighed
  kUnderWay,     // it is coming, and nothing else would be better
  kNoBetter,     // nothing else would be better than loading it
  kBetter,       // than loading it, or waiting for it
};

std::string_view Name(MissReason reason);

struct MissDecision {
  std::uint32_t expert = 0;
  MissAnswer answer = MissAnswer::kLoad;
  std::uint32_t place = 0;  // of kElsewhere
  double seconds = 0;       // from now until it has been computed
  MissReason why = MissReason::kOnlyAnswer;

  bool operator==(const MissDecision&) const = default;
};

struct MissPlan {
  std::vector<MissDecision> decisions;  // in the order in which loads are to begin
  double seconds = 0;                   // from now until the layer has all of them
  double price = 0;                     // of all rows together
  double all_loaded_seconds = 0;        // if everything that can be were waited for or loaded

  bool operator==(const MissPlan&) const = default;
};

// For --explain: a line for the layer, and one for each miss.
std::vector<std::string> Describe(const LayerMisses& layer, const MissPlan& plan);

}  // namespace troupe
