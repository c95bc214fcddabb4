#include "split/flow/cut_plan.h"

#include <algorithm>
#include <cmath>

namespace troupe {
namespace {

constexpr double kNewestChunk = 0.25;
constexpr Nanos kWaitHalves = 2'000'000'000;
// Rows below which a chunk is mostly what every pass takes.
constexpr std::size_t kLeastChunk = 16;
constexpr std::size_t kMostChunks = 16;
constexpr double kWorthLosing = 1.05;

double Seconds(const std::function<double(std::size_t)>& of_layer, std::uint32_t layers,
               std::size_t rows) {
  return of_layer(rows) * layers;
}

}  // namespace

std::vector<std::size_t> ChunksOf(std::size_t tokens, std::size_t chunk) {
  std::vector<std::size_t> chunks;
  for (std::size_t left = tokens; left > 0; left -= chunks.back()) {
    chunks.push_back(std::min(left, chunk));
  }
  return chunks;
}

// Each lane takes one chunk after the other: the end's layers, the thread that writes messages, the
// link, and the cloud, which reads them first. The cloud is asked when the end begins, and takes no
// rows before it has said that it is ready.
double CutSeconds(const CutFacts& facts, std::uint32_t layer, std::span<const std::size_t> chunks) {
  const double half = facts.round_trip_seconds / 2;
  const double bytes_a_row = facts.bytes_a_row + layer * facts.bytes_a_row_and_layer;
  double end = facts.end_wait_seconds, written = 0, link = facts.round_trip_seconds,
         cloud = half + facts.cloud_wait_seconds;
  for (const std::size_t rows : chunks) {
    end += Seconds(facts.end_layer_seconds, layer, rows);
    written = std::max(written, end) + facts.encode_seconds_a_row * static_cast<double>(rows);
    link = std::max(link, written);
    if (facts.bytes_a_second > 0) {
      link += bytes_a_row * static_cast<double>(rows) / facts.bytes_a_second;
    }
    cloud = std::max(cloud, link + half) + facts.chunk_wait_seconds +
            facts.decode_seconds_a_row * static_cast<double>(rows) +
            Seconds(facts.cloud_layer_seconds, facts.layers - layer, rows);
  }
  return cloud + half;
}

std::optional<CutPlan> PlanCut(const CutFacts& facts, std::size_t tokens,
                               std::optional<std::size_t> chunk) {
  std::optional<CutPlan> best;
  const std::size_t unit = facts.unit,
                    most = std::max(facts.most_rows / unit, std::size_t{1}) * unit;
  const std::size_t most_chunks = std::max(
      (tokens + most - 1) / most, std::clamp<std::size_t>(tokens / kLeastChunk, 1, kMostChunks));
  for (std::size_t count = (tokens + most - 1) / most; count <= most_chunks; ++count) {
    const std::size_t wanted =
        chunk.value_or((tokens + count - 1) / std::max<std::size_t>(count, 1));
    const std::size_t size = std::min(most, (wanted + unit - 1) / unit * unit);
    if (size == 0) break;
    const std::vector<std::size_t> chunks = ChunksOf(tokens, size);
    for (const std::uint32_t layer : facts.before) {
      const double seconds = CutSeconds(facts, layer, chunks);
      if (!best || seconds < best->seconds) {
        best = {.layer = layer, .chunk = size, .seconds = seconds};
      }
    }
    if (chunk) break;
  }
  return best;
}

std::optional<CutPlan> PlanCutByLink(const CutFacts& facts, std::span<const ShorterRows> shorter,
                                     std::size_t tokens, std::optional<std::size_t> chunk) {
  const std::optional<CutPlan> exact = PlanCut(facts, tokens, chunk);
  std::optional<CutPlan> best = exact;
  for (const ShorterRows& rows : shorter) {
    CutFacts of_layer = facts;
    of_layer.before = {rows.layer};
    of_layer.bytes_a_row = rows.bytes_a_row;
    of_layer.encode_seconds_a_row = rows.encode_seconds;
    of_layer.decode_seconds_a_row = rows.decode_seconds;
    std::optional<CutPlan> plan = PlanCut(of_layer, tokens, chunk);
    if (!plan) continue;
    plan->lossy = true;
    plan->code = rows.code;
    const bool is_worth_it = !exact || kWorthLosing * plan->seconds < exact->seconds;
    if (is_worth_it && (!best || plan->seconds < best->seconds)) best = plan;
  }
  return best;
}

void CutMeter::OnEnd(std::size_t rows, std::uint32_t layers, double seconds) {
  end_.Note(static_cast<double>(rows), seconds / layers);
}

void CutMeter::OnCloud(std::size_t rows, std::uint32_t layers, double waited, double seconds,
                       Nanos now) {
  cloud_.Note(static_cast<double>(rows), seconds / layers);
  const double before = ChunkWaitSeconds(now);
  chunk_wait_ = before + kNewestChunk * (waited - before);
  waited_at_ = now;
}

// A message that took hardly more than the round trip says that the link is at least so fast: how
// fast it is, longer ones say.
void CutMeter::OnLink(std::size_t bytes, double seconds, double round_trip) {
  constexpr double kLeastShare = 0.1;
  const double least = kLeastShare * seconds, sending = std::max(seconds - round_trip, least);
  if (sending <= 0) return;
  const double found = static_cast<double>(bytes) / sending;
  const bool is_bound = seconds - round_trip < least;
  if (is_bound && found <= bytes_a_second_) return;
  bytes_a_second_ =
      bytes_a_second_ == 0 ? found : bytes_a_second_ + kNewestChunk * (found - bytes_a_second_);
}

double CutMeter::ChunkWaitSeconds(Nanos now) const {
  return chunk_wait_ *
         std::exp2(-static_cast<double>(now - waited_at_) / static_cast<double>(kWaitHalves));
}

double CutMeter::LayerSeconds(const RowCurve& curve, std::size_t rows, double read_seconds,
                              std::uint32_t layers) {
  const auto many = static_cast<double>(rows);
  return curve.measured() ? curve.At(many) : many * read_seconds / layers;
}

}  // namespace troupe
