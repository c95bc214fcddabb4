#include "runtime/pass_times.h"

#include <algorithm>
#include <utility>

namespace troupe {

Nanos TimedPass::stalled() const {
  Nanos sum = 0;
  for (const TimeSpan& stall : stalls) sum += stall.length();
  return sum;
}

Nanos TimedPass::reading() const {
  Nanos sum = 0;
  for (const ReadSpan& read : reads) {
    const Nanos begin = std::max(read.time.begin, time.begin);
    sum += std::max<Nanos>(0, std::min(read.time.end, time.end) - begin);
  }
  return sum;
}

void PassTimes::OnPassBegins(const PassFacts& pass, Nanos now) {
  under_way_ = !pass.HasPrompt();
  if (under_way_) pass_ = {.number = ++number_, .time = {now, now}};
}

void PassTimes::OnAsked(std::uint32_t layer, Nanos now) {
  if (!under_way_) return;
  if (!pass_.layers.empty()) pass_.layers.back().time.end = now;
  pass_.layers.push_back({.layer = layer, .time = {now, now}});
}

void PassTimes::OnStalled(const TimeSpan& time) {
  if (!under_way_ || pass_.layers.empty()) return;
  pass_.stalls.push_back(time);
  pass_.layers.back().stalled += time.length();
}

void PassTimes::OnMiss(const MissEvent& miss) {
  if (under_way_ && !pass_.layers.empty()) pass_.layers.back().misses.push_back(miss);
}

void PassTimes::OnReads(const TimeSpan& time, std::uint64_t bytes) {
  if (!under_way_) return;
  // What is read between two passes began in the one before.
  if (pass_.reads.empty() && !passes_.empty() && time.begin < passes_.back().time.end) {
    passes_.back().reads.push_back({{time.begin, passes_.back().time.end}, bytes});
  }
  // A look that found nothing goes on with the next one.
  if (!pass_.reads.empty()) {
    ReadSpan& last = pass_.reads.back();
    if (last.bytes == 0 && last.time.end == time.begin) {
      last.time.end = time.end;
      last.bytes = bytes;
      return;
    }
  }
  pass_.reads.push_back({.time = time, .bytes = bytes});
}

void PassTimes::OnPassEnds(Nanos now) {
  if (!std::exchange(under_way_, false)) return;
  pass_.time.end = now;
  if (!pass_.layers.empty()) pass_.layers.back().time.end = now;
  passes_.push_back(std::move(pass_));
  if (passes_.size() > kept_) passes_.pop_front();
}

const TimedPass* PassTimes::Slowest() const {
  const auto slowest = std::ranges::max_element(
      passes_, {}, [](const TimedPass& pass) { return pass.time.length(); });
  return slowest == passes_.end() ? nullptr : &*slowest;
}

}  // namespace troupe
