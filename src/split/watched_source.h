// A place that chooses tokens, watched: somebody is told before a run begins there, and each time
// that one has begun or is over, before who has asked for it is. On the loop's thread.
#pragma once

#include <functional>
#include <utility>

#include "split/token_source.h"

namespace troupe {

class WatchedSource final : public TokenSource {
 public:
  // The source must outlive it, and it what it has started.
  WatchedSource(TokenSource& source, std::function<void()> before_start,
                std::function<void()> on_change)
      : source_(source), before_start_(std::move(before_start)), on_change_(std::move(on_change)) {}

  Stop Start(const RunAsk& ask, RunEvents events) override {
    events.on_end = [this, told = std::move(events.on_end)](FinishReason reason,
                                                            const Usage& usage) {
      on_change_();
      told(reason, usage);
    };
    events.on_failure = [this, told = std::move(events.on_failure)](const Status& why) {
      on_change_();
      told(why);
    };
    before_start_();
    Stop stop = source_.Start(ask, std::move(events));
    on_change_();
    return [this, stop = std::move(stop)] {
      stop();
      on_change_();
    };
  }

 private:
  TokenSource& source_;
  const std::function<void()> before_start_, on_change_;
};

}  // namespace troupe
