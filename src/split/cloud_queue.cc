#include "split/cloud_queue.h"

#include <algorithm>

#include "runtime/batch_forecast.h"

namespace troupe {
namespace {

constexpr Nanos kRemember = 2'000'000'000;

}  // namespace

void CloudQueue::OnTold(const CloudLoad& load, std::size_t own_runs, double round_trip_seconds,
                        Nanos now) {
  load_ = load;
  others_ = load.under_way - std::min<std::size_t>(load.under_way, own_runs);
  to_read_ = static_cast<double>(load.to_read);
  at_ = now;
  const Nanos known = now - static_cast<Nanos>(round_trip_seconds * 1e9);
  for (const Sent& sent : sent_) {
    if (sent.at > known) to_read_ += sent.tokens;
  }
  to_read_ = std::max(to_read_, 0.0);
}

void CloudQueue::OnSent(std::size_t tokens, Nanos now) { Add(static_cast<double>(tokens), now); }

void CloudQueue::OnTakenBack(std::size_t tokens, Nanos now) {
  Add(-static_cast<double>(tokens), now);
}

void CloudQueue::Add(double tokens, Nanos now) {
  to_read_ = std::max(ToRead(now) + tokens, 0.0);
  at_ = now;
  while (!sent_.empty() && sent_.front().at < now - kRemember) sent_.pop_front();
  sent_.push_back({.at = now, .tokens = tokens});
}

double CloudQueue::ToRead(Nanos now) const {
  if (load_.read_seconds <= 0) return to_read_;
  return std::max(to_read_ - static_cast<double>(now - at_) * 1e-9 / load_.read_seconds, 0.0);
}

double CloudQueue::WaitSeconds(std::size_t own_runs, std::uint32_t sequences, Nanos now) const {
  return std::max(troupe::WaitSeconds(others_ + own_runs, sequences, load_.answer_seconds),
                  ReadsSeconds(now));
}

}  // namespace troupe
