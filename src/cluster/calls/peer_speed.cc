#include "cluster/calls/peer_speed.h"

#include <algorithm>
#include <cmath>

namespace troupe {

namespace {

double WayOf(const CallTimes& times) {
  return std::max(0.0, times.seconds - times.waited - times.computed);
}

}  // namespace

void CallSeconds::Add(const CallTimes& times) {
  ++calls;
  rows += times.rows;
  waited += times.waited;
  computed += times.computed;
  way += WayOf(times);
}

// The greeting was a call that brings nothing back: without it a first call of many rows, on a slow
// link, would make it seem that every call takes so long.
PeerSpeed::PeerSpeed(std::string_view name, double round_trip_seconds, Nanos now)
    : name_(name), round_trip_(round_trip_seconds), heard_(now) {
  way_.Add(0, round_trip_seconds);
}

void PeerSpeed::OnGreeted(double round_trip_seconds) {
  round_trip_ = round_trip_seconds;
  way_.Add(0, round_trip_seconds);
}

void PeerSpeed::OnAnswered(const CallTimes& times, Nanos now) {
  constexpr double kNewest = 0.25;  // of the queue, which changes quickly
  const double way = WayOf(times);
  const double experts = std::max<std::uint32_t>(1, times.experts);
  way_.Add(static_cast<double>(times.rows * times.row_bytes), way);
  computing_.Add(times.rows / experts, times.computed / experts);
  queue_ += kNewest * (times.waited - queue_);
  heard_ = now;
}

void PeerSpeed::OnLate(double seconds, Nanos now) {
  queue_ = std::max(queue_, seconds);
  heard_ = now;
}

Place PeerSpeed::Measured(std::size_t row_bytes) const {
  return {.name = name_,
          .latency_seconds = way_.at_zero(),
          .expert_seconds = computing_.at_zero(),
          .row_seconds = computing_.slope() + static_cast<double>(row_bytes) * way_.slope(),
          .queued_seconds = queue_};
}

Place PeerSpeed::Expected(Nanos now, std::size_t row_bytes) const {
  constexpr double kHalfLife = 2e9;
  const double kept = std::exp2(-static_cast<double>(std::max<Nanos>(0, now - heard_)) / kHalfLife);
  Place place = Measured(row_bytes);
  constexpr double kHope = 1e-3;  // the greeting, too, may have met a machine that was busy
  const double hoped = std::min(round_trip_, kHope);
  place.latency_seconds =
      std::min(place.latency_seconds, hoped + kept * (place.latency_seconds - hoped));
  place.expert_seconds *= kept;
  place.row_seconds *= kept;
  place.queued_seconds *= kept;
  return place;
}

}  // namespace troupe
