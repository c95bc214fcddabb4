#include "expert/flow/cost_model.h"

#include <algorithm>
#include <cmath>

namespace troupe {
namespace {

// Less than this tells more about the start of a run than about the disk.
constexpr Bytes kLeastRunBytes = 16_MiB;
constexpr double kLeastRunSeconds = 0.02;

// Along the logarithm of the size, between the neighbours of `request`.
template <typename Value>
double Interpolate(const std::vector<ReadCost>& reads, Bytes request, const Value& value) {
  TROUPE_CHECK(!reads.empty());
  const auto above = std::find_if(reads.begin(), reads.end(),
                                  [&](const ReadCost& read) { return read.request >= request; });
  if (above == reads.begin()) return value(reads.front());
  if (above == reads.end()) return value(reads.back());
  const ReadCost& below = *(above - 1);
  const double part = std::log(AsDouble(request) / AsDouble(below.request)) /
                      std::log(AsDouble(above->request) / AsDouble(below.request));
  return value(below) + part * (value(*above) - value(below));
}

}  // namespace

void RunningMean::Note(double sample) {
  if (!std::isfinite(sample) || sample <= 0) return;
  samples = samples < kMemory ? samples + 1 : kMemory;
  value += (sample - value) / samples;
}

Bytes LoadShape::Request() const {
  TROUPE_CHECK(extents > 0 && piece > Bytes());
  return std::clamp(Bytes(bytes.count() / extents), 1_B, piece);
}

double DiskCost::LoneSeconds(Bytes request) const {
  const double seconds =
      Interpolate(reads, request, [](const ReadCost& read) { return read.lone_seconds.value; });
  if (request <= reads.back().request) return seconds;
  return seconds + AsDouble(request - reads.back().request) / BytesPerSecond(request);
}

double DiskCost::BytesPerSecond(Bytes request) const {
  return Interpolate(reads, request, [](const ReadCost& read) { return read.Rate(); });
}

double DiskCost::SecondsToLoad(const LoadShape& load) const {
  // Many requests at once take the latency of a small one, then stream; one takes what it takes.
  const double together = LoneSeconds(1_B) + SecondsToStream(load);
  return std::max(LoneSeconds(load.Request()), together);
}

double DiskCost::SecondsToStream(const LoadShape& load) const {
  return AsDouble(load.bytes) / BytesPerSecond(load.Request());
}

void DiskCost::NoteRun(Bytes bytes, std::uint64_t requests, double seconds) {
  if (!measured() || requests == 0 || bytes < kLeastRunBytes || seconds < kLeastRunSeconds) return;
  const double size = AsDouble(bytes) / static_cast<double>(requests);
  const auto distance = [size](const ReadCost& read) {
    return std::abs(std::log(AsDouble(read.request) / size));
  };
  const auto nearest = std::min_element(
      reads.begin(), reads.end(),
      [&](const ReadCost& a, const ReadCost& b) { return distance(a) < distance(b); });
  nearest->in_runs.Note(AsDouble(bytes) / seconds);
}

DiskCost DiskCost::Behind(double bytes_per_second, double latency_seconds) const {
  DiskCost disk = *this;
  for (ReadCost& read : disk.reads) {
    const double size = AsDouble(read.request);
    if (bytes_per_second > 0) {
      read.lone_seconds.value = std::max(read.lone_seconds.value, size / bytes_per_second);
      read.bytes_per_second.value = std::min(read.bytes_per_second.value, bytes_per_second);
      read.in_runs.value = std::min(read.in_runs.value, bytes_per_second);
    }
    // Latencies of requests that are under way at once pass at once.
    read.lone_seconds.value += latency_seconds;
  }
  return disk;
}

const ExpertCost* CostModel::Find(std::string_view shape) const {
  const auto found = std::find_if(experts.begin(), experts.end(),
                                  [&](const ExpertCost& cost) { return cost.shape == shape; });
  return found == experts.end() || !found->first_row.measured() ? nullptr : &*found;
}

void CostModel::NoteExpert(std::string_view shape, double first_row_seconds,
                           double further_row_seconds) {
  auto found = std::find_if(experts.begin(), experts.end(),
                            [&](const ExpertCost& cost) { return cost.shape == shape; });
  if (found == experts.end()) {
    found = experts.insert(found, ExpertCost{.shape = std::string(shape)});
  }
  found->first_row.Note(first_row_seconds);
  found->further_row.Note(further_row_seconds);
}

std::optional<double> CostModel::SecondsToRun(std::string_view shape, Bytes bytes,
                                              double rows) const {
  if (rows <= 0) return 0;
  if (const ExpertCost* cost = Find(shape)) {
    return cost->first_row.value + std::max(0.0, rows - 1) * cost->further_row.value;
  }
  if (!memory_bytes_per_second.measured()) return std::nullopt;
  return std::max(1.0, rows) * AsDouble(bytes) / memory_bytes_per_second.value;
}

}  // namespace troupe
