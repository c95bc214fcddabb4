#include "expert/flow/distribution_judge.h"

#include <fmt/core.h>

#include <algorithm>

namespace troupe {
namespace {

constexpr double kKeptOfLayers = 0.995;  // of what was known, with each layer: some 200 count
constexpr double kEnoughShared = 96;     // layers, before they are judged
constexpr double kEnoughLocal = 16;
constexpr double kTooSlow = 0.97, kWorthIt = 1.03;  // gains; between the two it stays as it is
constexpr Nanos kFirstRest = 30'000'000'000, kLongestRest = 900'000'000'000;
constexpr Nanos kGivenUpAt = 4 * kFirstRest;  // the third rest
constexpr double kNearlyAll = 0.9;

}  // namespace

void DistributionJudge::Aged::Add(double planned_seconds, double took_seconds) {
  planned = planned * kKeptOfLayers + planned_seconds;
  took = took * kKeptOfLayers + took_seconds;
  layers = layers * kKeptOfLayers + 1;
}

std::size_t DistributionJudge::SizeOf(std::uint32_t rows) {
  std::size_t size = 0;
  while (size + 1 < kLeastRows.size() && rows >= kLeastRows[size + 1]) ++size;
  return size;
}

double DistributionJudge::GainOf(const Size& size) {
  if (size.shared.layers < kEnoughShared || size.shared.took <= 0) return 0;
  const double local = size.local.layers < kEnoughLocal ? 1 : size.local.Ratio();
  return local / size.shared.Ratio();
}

bool DistributionJudge::MayShare(std::uint32_t rows, Nanos now) {
  for (Size& one : sizes_) one.layers *= kKeptOfLayers;
  Size& size = sizes_[SizeOf(rows)];
  ++size.layers;
  if (size.counts.rests && now >= size.rests_until) {
    size.counts.rests = false;
    size.on_trial = true;
    size.shared = {};
  }
  if (size.counts.rests) ++size.counts.rested;
  return !size.counts.rests;
}

void DistributionJudge::OnLayer(const JudgedLayer& layer, Nanos now) {
  Size& size = sizes_[SizeOf(layer.rows)];
  const bool shared = layer.elsewhere > 0;
  (shared ? size.shared : size.local).Add(layer.all_local_seconds, layer.took_seconds);
  if (!size.counts.rests) ++(shared ? size.counts.shared : size.counts.local);
  recent_.push_back(layer);
  if (recent_.size() > kRecent) recent_.pop_front();
  if (shared) Judge(size, now);
}

// After a rest it has to be worth it, before the first one only not too slow.
void DistributionJudge::Judge(Size& size, Nanos now) {
  const double gain = GainOf(size);
  if (gain == 0) return;
  if (gain >= kWorthIt) {
    size.on_trial = false;
    size.next_rest = 0;
  }
  if (gain >= (size.on_trial ? kWorthIt : kTooSlow)) return;
  size.next_rest = std::clamp(2 * size.next_rest, kFirstRest, kLongestRest);
  size.rests_until = now + size.next_rest;
  size.counts.rests = true;
  ++size.counts.rests_begun;
}

// Passes of a size that were never shared have no say: the disk was sooner for each of their
// layers.
bool DistributionJudge::IsGivenUp() const {
  double all = 0, given_up = 0;
  for (const Size& size : sizes_) {
    if (size.counts.shared == 0) continue;
    all += size.layers;
    given_up += size.next_rest >= kGivenUpAt ? size.layers : 0;
  }
  return all > 0 && given_up >= kNearlyAll * all;
}

std::vector<DistributionReport> DistributionJudge::Report() const {
  std::vector<DistributionReport> reports;
  for (std::size_t i = 0; i < sizes_.size(); ++i) {
    DistributionReport report = sizes_[i].counts;
    report.least_rows = kLeastRows[i];
    report.gain = GainOf(sizes_[i]);
    reports.push_back(report);
  }
  return reports;
}

std::string ToString(const DistributionReport& report) {
  std::string line = fmt::format(
      "passes of {} rows or more: {} layers shared with peers, {} left to the own disk as it was "
      "sooner, {} while sharing rested",
      report.least_rows, report.shared, report.local, report.rested);
  if (report.gain > 0) line += fmt::format("; sharing is {:.2f} times as fast", report.gain);
  if (report.rests) line += ", and rests now";
  return line;
}

}  // namespace troupe
