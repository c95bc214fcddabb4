#include "split/end_engine.h"

#include <algorithm>
#include <utility>

#include "api/model_access.h"
#include "split/own_costs.h"
#include "split/run_left.h"

namespace troupe {

EndEngine::EndEngine(Model& model, const Clock& clock, PostToLoop post, bool exact)
    : model_(model),
      clock_(clock),
      exact_(exact),
      own_(model, clock, std::move(post), [this] { known_.Forget(); }),
      measure_(model, clock, own_, exact) {}

void EndEngine::Look() {
  counters_ = ModelAccess::CountersOf(model_);
  if (leaves_after_ && Ended() > *leaves_after_) leaves_after_.reset();
  if (Others() > 0) Yield();
}

void EndEngine::Yield() {
  if (!measure_.is_under_way()) return;
  measure_.Yield();
  leaves_after_ = Ended();
}

void EndEngine::MeasureIfIdle(bool has_others) {
  if (has_others || own_.runs() + Others() > 0) return;
  measure_.OnIdle(Costs(/*read=*/1, /*power=*/1).has_value());
}

std::size_t EndEngine::Others() const {
  const std::size_t all = counters_.waiting + counters_.reading + counters_.decoding;
  const std::size_t known = own_.runs() + (leaves_after_ ? 1 : 0);
  return all - std::min(all, known);
}

std::optional<PlaceCosts> EndEngine::Costs(std::size_t read, double power) const {
  BatchCounters counters = counters_;
  OwnConditions conditions{
      .exact_only = exact_, .power = power, .ahead = own_.tokens_to_read(), .runs = own_.runs()};
  if (measure_.is_under_way()) {  // who comes finds an idle engine
    counters.waiting = counters.reading = counters.decoding = counters.to_read = 0;
    conditions.ahead = conditions.runs = 0;
  }
  return OwnCostsOf(std::move(counters), model_.plan(), read, conditions);
}

UnderWay EndEngine::Of(const RunLeft& left, double read_seconds) const {
  return AtTheEnd(left,
                  {.sequences = model_.plan().sequences,
                   .others = Others(),
                   .request_seconds = counters_.request_seconds,
                   .read_seconds = read_seconds},
                  clock_.Now());
}

KnownPrefixes* EndEngine::KnownIn(Side place, KnownPrefixes& in_the_cloud) {
  if (!ModelAccess::EngineOf(model_).config().KeysTellAll()) return nullptr;
  if (place == Side::kCloud) return &in_the_cloud;
  return ModelAccess::KeepsPrefixes(model_) ? &known_ : nullptr;
}

}  // namespace troupe
