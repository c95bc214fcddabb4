// Brings experts over from peers that hold them, one after the other and piece by piece, while
// passes go on: what a node is to hold need not come from its disk, for which passes would wait. A
// source that refuses, is silent, goes or lies is left, and the next one goes on where it was;
// without any the expert is left to the disk.
//
// It asks for the next piece only after having rested as long as the last one took: half of a
// link's time is left to calls.
//
// Pure: time comes in as an argument, requests go out as values.
#pragma once

#include <cstddef>
#include <cstdint>
#include <limits>
#include <map>
#include <optional>
#include <span>
#include <vector>

#include "base/clock.h"
#include "expert/expert_id.h"

namespace troupe {

struct FetchCounters {
  std::uint64_t experts = 0;  // that came whole and true
  std::uint64_t bytes = 0;    // of all pieces
  std::uint64_t resumed = 0;  // experts whose source was left in the middle
  std::uint64_t wrong = 0;    // pieces or experts that were not what they should be
  std::uint64_t left = 0;     // experts left to the disk

  bool operator==(const FetchCounters&) const = default;
};

class ExpertFetch {
 public:
  using Source = std::uint64_t;  // a link
  using Checksum = std::uint64_t (*)(std::span<const std::byte>);

  struct Wanted {
    ExpertId id;
    std::uint64_t bytes = 0;
    std::uint64_t checksum = 0;
    std::vector<Source> sources;                        // the best one first
    Nanos longest = std::numeric_limits<Nanos>::max();  // then the disk is sooner
  };
  struct Request {
    Source source = 0;
    std::uint64_t number = 0;
    ExpertId id;
    std::uint64_t offset = 0;

    bool operator==(const Request&) const = default;
  };
  struct Piece {
    std::uint64_t number = 0;
    ExpertId id;
    std::uint64_t total = 0, offset = 0;
    std::optional<std::uint64_t> checksum;  // if its source knows it
    std::span<const std::byte> data;
  };

  explicit ExpertFetch(Checksum checksum, Nanos patience = 5'000'000'000)
      : checksum_(checksum), patience_(patience) {}

  // Nothing else may be under way.
  void Begin(std::vector<Wanted> wanted);
  bool busy() const { return !wanted_.empty(); }
  // All have come, or are left to the disk: those that have come, once.
  std::optional<std::map<ExpertId, std::vector<std::byte>>> TakeDone();

  // To be sent now.
  std::optional<Request> Next(Nanos now);
  // When Next has something to say, if nothing comes before.
  std::optional<Nanos> NextTime() const;

  void OnPiece(Source source, const Piece& piece, Nanos now);
  void OnRefused(Source source, std::uint64_t number);
  void OnLost(Source source);

  const FetchCounters& counters() const { return counters_; }

 private:
  struct Open {
    Request request;
    Nanos sent = 0;
  };

  bool IsTooLate(Nanos now) const;
  void LeaveSource();
  void TakeNextExpert();

  const Checksum checksum_;
  const Nanos patience_;
  std::vector<Wanted> wanted_;  // the one under way first
  std::vector<std::byte> bytes_;
  std::map<ExpertId, std::vector<std::byte>> done_;
  std::optional<Open> open_;
  std::optional<Nanos> begun_;  // the expert under way
  Nanos rests_until_ = 0;
  std::uint64_t last_number_ = 0;
  FetchCounters counters_;
};

}  // namespace troupe
