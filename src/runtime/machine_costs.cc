#include "runtime/machine_costs.h"

#include <algorithm>
#include <optional>

#include "base/clock.h"
#include "base/thread_pool.h"
#include "io/direct_file.h"
#include "runtime/model_work.h"

namespace troupe {

Result<MachineCosts> AskCosts(const CostQuestion& question, CostModelFile& file) {
  MachineCosts costs;
  std::optional<DirectFile> disk;
  if (!question.disk_file.empty()) {
    TROUPE_ASSIGN_OR_RETURN(disk, DirectFile::Open(question.disk_file));
    costs.device = disk->identity().device;
  }
  costs.model = file.Get(question.threads, costs.device);
  CostModel& model = costs.model;
  const MonotonicClock clock;
  ThreadPool pool(question.threads);

  if (question.fresh || !model.memory_bytes_per_second.measured()) {
    TROUPE_ASSIGN_OR_RETURN(const double speed, ProbeMemory(pool, question.memory));
    model.memory_bytes_per_second = {};
    model.memory_bytes_per_second.Note(speed);
    costs.memory_measured = true;
  }
  for (const ExpertLayout& shape : question.shapes) {
    const std::string key = ShapeKey(shape);
    if (!question.fresh && model.Find(key) != nullptr) continue;
    TROUPE_ASSIGN_OR_RETURN(
        const ExpertSeconds seconds,
        ProbeExpert(shape, pool, clock,
                    question.seconds_for_experts / static_cast<double>(question.shapes.size()),
                    question.memory));
    std::erase_if(model.experts, [&](const ExpertCost& cost) { return cost.shape == key; });
    model.NoteExpert(key, seconds.first_row, seconds.further_row);
    costs.shapes_measured.push_back(key);
  }
  if (disk && (question.fresh || !model.disk.measured() || model.disk.direct != disk->direct())) {
    TROUPE_ASSIGN_OR_RETURN(model.disk,
                            ProbeDiskCost(question.reader, *disk, clock, question.memory));
    costs.disk_measured = true;
  }
  if (costs.AnyMeasured() && question.memory >= kProbeMemory) {
    file.Put(question.threads, costs.device, model);
    file.Save();
    costs.saved = true;
  }
  return costs;
}

CostModel RememberedCosts(std::uint32_t threads, const std::string& disk_file,
                          const CostModelFile& file) {
  if (disk_file.empty()) return file.Get(threads, /*device=*/0);
  const Result<DirectFile> disk = DirectFile::Open(disk_file);
  return disk.ok() ? file.Get(threads, disk->identity().device) : CostModel();
}

void UpdateFromRun(CostModel& model, const LoaderStats& stats) {
  model.disk.NoteRun(Bytes(stats.seen.bytes), stats.seen.reads, stats.seen.seconds);
}

void UpdateFromTokens(CostModel& model, const ExpertLayouts& layouts, const TokensSeen& seen) {
  constexpr std::uint64_t kFew = 16;
  const double computed = seen.seconds - seen.stall_seconds;
  if (seen.tokens < kFew || seen.touched == Bytes() || computed <= 0) return;
  const double seconds_a_byte =
      computed / static_cast<double>(seen.tokens) / static_cast<double>(seen.touched.count());
  for (ExpertCost& cost : model.experts) {
    const auto layout = std::ranges::find(layouts, cost.shape, ShapeKey);
    if (layout == layouts.end()) continue;
    const double seconds = seconds_a_byte * static_cast<double>(layout->SlotBytes());
    // A run that was stopped for a while, or measured something else, does not count.
    constexpr double kMostTimes = 4;
    const double known = cost.first_row.value;
    if (seconds < kMostTimes * known && known < kMostTimes * seconds) cost.first_row.Note(seconds);
  }
}

void RememberRun(const Engine& engine, const TokensSeen& seen, CostModelFile file) {
  const std::optional<OffloadReport> offload = engine.offload_report();
  const LinkSpeed& link = engine.offload_options().link;
  if (!offload || link.bytes_per_second > 0 || link.latency_seconds > 0) return;
  const std::uint32_t threads = engine.plan().threads;
  const CostModel before = file.Get(threads, offload->device);
  CostModel after = before;
  UpdateFromTokens(after, engine.expert_layouts(), seen);
  UpdateFromRun(after, offload->loads);
  if (after == before) return;
  file.Put(threads, offload->device, after);
  file.Save();
}

}  // namespace troupe
