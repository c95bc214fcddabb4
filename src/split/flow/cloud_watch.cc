#include "split/flow/cloud_watch.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

namespace troupe {

bool CloudWatch::TakeAsk(Nanos now, bool wants_load) {
  const bool is_old = wants_load && usable() && now - load_at_ >= pauses_.for_load;
  if (asking_ || (now < ask_at_ && !is_old)) return false;
  return asking_ = true;
}

void CloudWatch::GoTo(State state, Nanos pause, Nanos now, std::string news) {
  // Why it is away may read differently each time.
  const bool is_new = state != state_ || (state == State::kRefused && news != told_);
  state_ = state;
  asking_ = false;
  ask_at_ = now + pause;
  if (!is_new) return;
  told_ = news;
  news_ = std::move(news);
}

void CloudWatch::OnThere(Nanos now) {
  away_pause_ = 0;
  load_at_ = now;
  GoTo(State::kThere, pauses_.while_there, now, "the cloud is there and has the same model");
}

void CloudWatch::OnSilent(const Status& why, Nanos now) {
  away_pause_ =
      away_pause_ == 0 ? pauses_.first_away : std::min(2 * away_pause_, pauses_.most_away);
  GoTo(State::kAway, away_pause_, now,
       fmt::format("serving alone, as the cloud is away: {}", why.message()));
}

void CloudWatch::OnRefused(const Status& why, Nanos now) {
  GoTo(State::kRefused, pauses_.refused, now, fmt::format("serving alone: {}", why.message()));
}

std::optional<std::string> CloudWatch::TakeNews() { return std::exchange(news_, std::nullopt); }

std::string_view ToString(CloudWatch::State state) {
  switch (state) {
    case CloudWatch::State::kUnknown:
      return "unknown";
    case CloudWatch::State::kThere:
      return "there";
    case CloudWatch::State::kAway:
      return "away";
    case CloudWatch::State::kRefused:
      return "refused";
  }
  return "unknown";
}

}  // namespace troupe
