#include "expert/flow/miss_timeline.h"

#include <algorithm>

#include "base/check.h"

namespace troupe {
bool IsLossy(MissAnswer answer) {
  return answer == MissAnswer::kLoadLow || answer == MissAnswer::kSubstitute ||
         answer == MissAnswer::kDrop;
}

double PriceOf(const Miss& miss, MissAnswer answer) {
  switch (answer) {
    case MissAnswer::kLoadLow:
      return miss.low_price.value();
    case MissAnswer::kSubstitute:
      return miss.substitute_price.value();
    case MissAnswer::kDrop:
      return miss.drop_price.value();
    default:
      return 0;
  }
}

double MissTimeline::Moment::Seconds() const { return std::max({loaded, computed, elsewhere}); }

MissTimeline::MissTimeline(const LayerMisses& layer)
    : layer_(layer), places_(layer.places.size()) {}

MissTimeline::Moment MissTimeline::Begin() {
  for (std::size_t p = 0; p < places_.size(); ++p) places_[p] = layer_.places[p].queued_seconds;
  // Loads under way come whatever is decided: they are ahead of all that begin now.
  return {.bytes = AsDouble(layer_.medium.queued), .computed = layer_.local.busy_seconds};
}

double MissTimeline::EndAt(std::uint32_t place, const Miss& miss) const {
  const Place& at = layer_.places[place];
  return at.latency_seconds + places_[place] + at.SecondsFor(miss.rows);
}

double MissTimeline::Add(const Miss& miss, const MissOption& option, Moment& moment) {
  // A load under way takes the medium even if something else answers first.
  if (miss.loading) moment.bytes += AsDouble(*miss.loading);
  moment.price += PriceOf(miss, option.answer) * miss.rows;
  switch (option.answer) {
    case MissAnswer::kWait:
    case MissAnswer::kLoad:
    case MissAnswer::kLoadLow: {
      if (option.answer != MissAnswer::kWait) {
        moment.bytes += AsDouble(option.answer == MissAnswer::kLoad ? miss.full : miss.low);
      }
      const MediumState& medium = layer_.medium;
      const double arrives =
          medium.measured() ? medium.latency_seconds + moment.bytes / medium.bytes_per_second : 0;
      const double compute = layer_.local.SecondsFor(miss.rows);
      moment.loaded = std::max(moment.loaded, arrives) + compute;
      moment.computed += compute;
      return std::max(moment.loaded, moment.computed);
    }
    case MissAnswer::kElsewhere: {
      const double end = EndAt(option.place, miss);
      places_[option.place] += layer_.places[option.place].SecondsFor(miss.rows);
      moment.elsewhere = std::max(moment.elsewhere, end);
      return end;
    }
    case MissAnswer::kSubstitute:
      // Further rows of an expert that is there.
      moment.computed += miss.rows * layer_.local.further_row_seconds;
      return moment.computed;
    case MissAnswer::kDrop:
      return 0;
  }
  TROUPE_CHECK(false);
}

}  // namespace troupe
