// Why an expert that a layer waits for was not read earlier: what guesses had said of it, and the
// one reason that kept its load from beginning, or from ending in time. Pure.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace troupe {

enum class NotEarlier : std::uint8_t {
  kNothingAhead,  // nothing is read ahead
  kHeldBack,      // the governor rests, or only probes
  kNotPredicted,  // no guess named it
  kTakenBack,     // an earlier guess named it, the last one no more
  kGivenUp,       // it was in memory when it was guessed, and has gone since
  kOddsTooLow,    // for so busy a link
  kNoSlot,        // its load was due, and every slot was in use
  kTooLate,       // it was guessed less than the time of a load before it was asked for
  kLinkBusy,      // it was guessed in time, and other loads went first
};
std::string_view ToString(NotEarlier reason);

struct MissForesight {
  std::uint32_t ahead = 0;  // layers, of the guess that is told of; 0: none named it
  double odds = 0;          // as they were when it was made
  double least_odds = 0;    // that a load had to have when the layer asked
  double lead_seconds = 0;  // from the guess to the ask
  double load_seconds = 0;  // that one load takes; 0: not measured
  bool reads_ahead = false;
  bool held_back = false;
  bool was_absent = false;  // when it was guessed
  bool taken_back = false;  // the last guess does not have it
  bool no_slot = false;
  bool under_way = false;  // when it was asked for

  NotEarlier why() const;
};

// The reason, and which layer had guessed it, how sure, and how long before `layer` asked.
std::string ToString(const MissForesight& foresight, std::uint32_t layer);

}  // namespace troupe
