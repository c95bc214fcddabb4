#include "cluster/calls/peer_speed.h"

#include <algorithm>

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

void PeerSpeed::OnAnswered(const CallTimes& times) {
  constexpr double kNewest = 0.25;  // of the queue, which changes quickly
  const double way = WayOf(times);
  const double experts = std::max<std::uint32_t>(1, times.experts);
  way_.Add(times.rows, way);
  computing_.Add(times.rows / experts, times.computed / experts);
  queue_ += kNewest * (times.waited - queue_);
}

void PeerSpeed::OnLate(double seconds) { queue_ = std::max(queue_, seconds); }

Place PeerSpeed::AsPlace() const {
  return {.name = name_,
          .latency_seconds = way_.measured() ? way_.at_zero() : round_trip_,
          .expert_seconds = computing_.at_zero(),
          .row_seconds = computing_.slope() + way_.slope(),
          .queued_seconds = queue_};
}

double PeerSpeed::SecondsFor(std::uint32_t experts, std::uint32_t rows) const {
  const Place place = AsPlace();
  return place.queued_seconds + place.latency_seconds + experts * place.expert_seconds +
         rows * place.row_seconds;
}

}  // namespace troupe
