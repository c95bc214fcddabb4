// When a layer ends if its misses are answered in a given way: the medium, this processor and the
// other places work at the same time, each on one thing after the other. The arithmetic that a
// planner of misses (miss_planner.h) searches with. Adding an answer never makes anything end
// sooner, so that the cost of a plan's beginning is a lower bound of the whole.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "expert/flow/miss_plan.h"

namespace troupe {

// One way to answer a miss.
struct MissOption {
  MissAnswer answer = MissAnswer::kLoad;
  std::uint32_t place = 0;  // of kElsewhere

  bool operator==(const MissOption&) const = default;
};

bool IsLossy(MissAnswer answer);
// Of one row.
double PriceOf(const Miss& miss, MissAnswer answer);

class MissTimeline {
 public:
  // `layer` and what it points to must outlive it.
  explicit MissTimeline(const LayerMisses& layer);

  // What has been added so far; values, to go back to. `places` is the timeline's own.
  struct Moment {
    double bytes = 0;     // that the medium passes first
    double loaded = 0;    // all loads have come and are computed
    double computed = 0;  // this processor has computed everything, if it never waited
    double elsewhere = 0;
    double price = 0;

    double Seconds() const;
  };

  Moment Begin();
  // Loads come in the order in which they are added. Returns when this miss is answered.
  double Add(const Miss& miss, const MissOption& option, Moment& moment);
  // When a place would be done with all its work and that miss.
  double EndAt(std::uint32_t place, const Miss& miss) const;
  double place_work(std::uint32_t place) const { return places_[place]; }
  void set_place_work(std::uint32_t place, double seconds) { places_[place] = seconds; }

  // What a planner makes small.
  double Cost(const Moment& moment) const {
    return moment.Seconds() + layer_.loss.seconds_per_price * moment.price;
  }

 private:
  const LayerMisses& layer_;
  std::vector<double> places_;  // seconds of work that each has
};

}  // namespace troupe
