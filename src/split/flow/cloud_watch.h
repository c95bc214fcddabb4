// What an end knows of its cloud: whether it is there and fits, when it is asked next whether it
// is, and what its user is told when that changes. Asking is end_answers.h's. Pure.
#pragma once

#include <optional>
#include <string>

#include "base/clock.h"
#include "base/status.h"

namespace troupe {

class CloudWatch {
 public:
  enum class State {
    kUnknown,  // not asked yet
    kThere,
    kAway,     // nobody there, or no answer
    kRefused,  // it is there, but has another model or does not take the key
  };

  struct Pauses {
    Nanos while_there = 2'000'000'000;
    Nanos for_load = 250'000'000;    // where its load matters now, since that was told last
    Nanos first_away = 250'000'000;  // doubled by each silence up to
    Nanos most_away = 8'000'000'000;
    Nanos refused = 30'000'000'000;
  };

  CloudWatch() = default;
  explicit CloudWatch(const Pauses& pauses) : pauses_(pauses) {}

  bool usable() const { return state_ == State::kThere; }
  State state() const { return state_; }

  // Whether it is time to ask; if so, it is under way until one of the three below. `wants_load`:
  // somebody decides by it.
  bool TakeAsk(Nanos now, bool wants_load = false);
  // An answer has told its load.
  void OnLoad(Nanos now) { load_at_ = now; }

  void OnThere(Nanos now);
  // It did not answer, also to a request: then it is asked soon.
  void OnSilent(const Status& why, Nanos now);
  void OnRefused(const Status& why, Nanos now);

  // A line, once for each change.
  std::optional<std::string> TakeNews();

 private:
  void GoTo(State state, Nanos pause, Nanos now, std::string news);

  Pauses pauses_;
  State state_ = State::kUnknown;
  bool asking_ = false;
  Nanos ask_at_ = 0;
  Nanos load_at_ = 0;
  Nanos away_pause_ = 0;
  std::string told_;
  std::optional<std::string> news_;
};

std::string_view ToString(CloudWatch::State state);

}  // namespace troupe
