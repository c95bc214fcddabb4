#include "expert/flow/speed_estimate.h"

#include <algorithm>
#include <cmath>

namespace troupe {
namespace {

// Dense weights, counted in experts of the shape that stands for them.
std::optional<double> SecondsForDense(const ModelWork& work, const CostModel& costs, Bytes bytes,
                                      std::uint32_t rows) {
  if (bytes == Bytes()) return 0;
  const auto one = costs.SecondsToRun(work.like, work.like_bytes, rows);
  if (!one || work.like_bytes == Bytes()) return costs.SecondsToRun("", bytes, rows);
  return *one * AsDouble(bytes) / AsDouble(work.like_bytes);
}

// How many of a layer's experts `tokens` tokens choose between them, each at random.
double DistinctExperts(const ModelWork& work, std::uint32_t tokens) {
  const double all = work.experts_per_layer, chosen = work.experts_per_token;
  if (all <= 0) return 0;
  return all * (1 - std::pow(1 - chosen / all, tokens));
}

}  // namespace

PassEstimate& PassEstimate::operator+=(const PassEstimate& other) {
  compute_seconds += other.compute_seconds;
  disk_seconds += other.disk_seconds;
  wait_seconds += other.wait_seconds;
  bytes_read += other.bytes_read;
  experts_read += other.experts_read;
  return *this;
}

double SpeedEstimate::FastestDecode() const {
  return 1 / std::max(decode.compute_seconds, decode.disk_seconds);
}

double UniformHitRate(const MemoryPlan& plan, const MemoryNeeds& needs) {
  if (plan.all_resident || needs.AllExperts() == 0) return 1;
  return std::min(1.0, static_cast<double>(plan.slots) / needs.AllExperts());
}

Result<PassEstimate> EstimatePass(const ModelWork& work, const CostModel& costs,
                                  std::uint32_t tokens, double hit_rate) {
  const auto dense = SecondsForDense(work, costs, work.dense, tokens);
  const auto head = SecondsForDense(work, costs, work.head, 1);
  if (!dense || !head) {
    return Error(Code::kFailedPrecondition, "the speed of memory was not measured");
  }
  PassEstimate pass{.compute_seconds = *dense + *head};
  const double used = DistinctExperts(work, tokens);
  const double missed = used * (1 - hit_rate);
  if (missed > 0 && !costs.disk.measured()) {
    return Error(Code::kFailedPrecondition, "the speed of the disk was not measured");
  }
  for (const ExpertLayers& kind : work.experts) {
    const double rows = used > 0 ? tokens * work.experts_per_token / used : 0;
    const double one = costs.SecondsToRun(kind.shape, kind.bytes, rows).value_or(0);
    const double compute = used * one;
    double disk = 0;
    if (missed > 0) {
      // The first request's latency, which nothing hides, then the bytes one after another.
      const double stream = costs.disk.SecondsToStream(kind.load);
      const double latency = costs.disk.SecondsToLoad(kind.load) - stream;
      disk = std::min(1.0, missed) * latency + missed * stream;
    }
    const double wait = std::max(0.0, disk - std::max(0.0, compute - one));
    pass.compute_seconds += kind.layers * compute;
    pass.disk_seconds += kind.layers * disk;
    pass.wait_seconds += kind.layers * wait;
    pass.experts_read += kind.layers * missed;
    pass.bytes_read += kind.layers * missed * AsDouble(kind.load.bytes);
  }
  return pass;
}

Result<SpeedEstimate> EstimateSpeed(const ModelWork& work, const MemoryPlan& plan,
                                    const MemoryNeeds& needs, const CostModel& costs,
                                    std::uint32_t prompt) {
  TROUPE_CHECK(prompt >= 1 && plan.chunk >= 1);
  SpeedEstimate speed{.hit_rate = UniformHitRate(plan, needs), .prompt = prompt};
  TROUPE_ASSIGN_OR_RETURN(speed.decode, EstimatePass(work, costs, 1, speed.hit_rate));
  for (std::uint32_t done = 0; done < prompt;) {
    const std::uint32_t tokens = std::min(plan.chunk, prompt - done);
    const bool nothing_loaded = done == 0 && !plan.all_resident;
    TROUPE_ASSIGN_OR_RETURN(const PassEstimate chunk,
                            EstimatePass(work, costs, tokens, nothing_loaded ? 0 : speed.hit_rate));
    speed.prefill += chunk;
    done += tokens;
  }
  return speed;
}

}  // namespace troupe
