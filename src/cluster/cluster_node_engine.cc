// What a node's parts ask of its engine: done by the engine's thread between two passes, and plans
// are chosen by a thread of their own.
#include <memory>
#include <utility>

#include "cluster/cluster_node.h"

namespace troupe {

void ClusterNode::Release(const ReleaseStep& step) {
  between_([this, step] { ReleaseOnEngine(step); });
}

void ClusterNode::Hold(HoldStep step, FetchedExperts fetched) {
  between_([this, step = std::move(step),
            experts = std::make_shared<const FetchedExperts>(std::move(fetched))] {
    HoldOnEngine(step, *experts);
  });
}

void ClusterNode::Check(SpotCheck check) {
  between_([this, check = std::move(check)] { CheckOnEngine(check); });
}

void ClusterNode::ForgetKept() {
  between_([this] { ForgetOnEngine(); });
}

void ClusterNode::Measure() {
  between_([this] { MeasureOnEngine(); });
}

void ClusterNode::Choose(PlanJob job) {
  to_choose_ = std::move(job);
  choose_.NotifyOne();
}

// Without the lock: a placer takes seconds with hundreds of nodes.
void ClusterNode::ChooseMain() {
  for (;;) {
    std::optional<PlanJob> job;
    {
      const MutexLock lock(mu_);
      while (!to_choose_ && !leaving_) choose_.Wait(mu_);
      if (leaving_) return;
      job = std::exchange(to_choose_, std::nullopt);
    }
    Result<PlanChoice> choice = ChoosePlan(*job);
    const MutexLock lock(mu_);
    parts_->OnPlanChosen(std::move(choice), clock_.Now());
  }
}

void ClusterNode::ReleaseOnEngine(const ReleaseStep& step) {
  if (engine_.ReleaseExpert(step.id)) return Held(OkStatus());
  const MutexLock lock(mu_);
  parts_->ReleaseLater(step);
}

// What was fetched is there at once; the others are read while passes go on.
void ClusterNode::HoldOnEngine(const HoldStep& step, const FetchedExperts& fetched) {
  if (engine_.plan().memory.all_resident)
    return Held(engine_.HoldExperts(step.layer, step.experts));
  std::vector<std::uint32_t> here, to_read;
  for (const std::uint32_t expert : step.experts) {
    (fetched.contains({step.layer, expert}) ? here : to_read).push_back(expert);
  }
  const Status held = here.empty() ? OkStatus() : engine_.HoldExperts(step.layer, here, fetched);
  if (!held.ok() || to_read.empty()) return Held(held);
  engine_.BeginHoldingExperts(step.layer, to_read);
  const MutexLock lock(mu_);
  reading_ = to_read.size();
}

void ClusterNode::GoOnHoldingOnEngine() {
  const std::optional<Status> held = engine_.GoOnHoldingExperts();
  {
    const MutexLock lock(mu_);
    looking_ = false;
    if (!held) return;
    const std::size_t read = std::exchange(reading_, 0);
    if (held->ok()) experts_read_ += read;
  }
  Held(*held);
}

void ClusterNode::Held(const Status& how) {
  const MutexLock lock(mu_);
  parts_->OnHeld(how, clock_.Now());
}

void ClusterNode::CheckOnEngine(const SpotCheck& check) {
  Result<SpotResult> result = checker_.Check(check);
  const MutexLock lock(mu_);
  parts_->OnChecked(check, std::move(result), clock_.Now());
}

// Earlier answers of a peer that was thrown out may be in what is kept of requests, of those under
// way, too: until for once none is.
void ClusterNode::ForgetOnEngine() {
  KvPool& kv = engine_.kv();
  kv.GiveUpKept();
  const bool is_empty = kv.free_positions() == kv.pages() * kv.page_positions();
  const MutexLock lock(mu_);
  parts_->OnForgotten(is_empty);
}

// What the disk has given lately; before anything was read, what a probe said of it.
void ClusterNode::MeasureOnEngine() {
  const std::optional<OffloadReport> report = engine_.offload_report();
  if (!report) return;
  const double speed = report->recent_bytes_per_second > 0
                           ? report->recent_bytes_per_second
                           : engine_.plan().costs.medium.bytes_per_second;
  const MutexLock lock(mu_);
  parts_->OnMeasured(speed);
  TakeDistribution(*report);
}

// Of each size of passes, when sharing begins or ends to rest.
void ClusterNode::TakeDistribution(const OffloadReport& report) {
  for (std::size_t i = 0; i < report.distribution.size(); ++i) {
    const bool rested = i < distribution_.size() && distribution_[i].rests;
    const DistributionReport& now = report.distribution[i];
    if (now.rests == rested) continue;
    Say(now.rests
            ? fmt::format("the own disk is sooner: {}", ToString(now))
            : fmt::format("passes of {} rows or more are shared with peers again", now.least_rows));
  }
  distribution_ = report.distribution;
  judged_ = {report.judged.begin(), report.judged.end()};
  parts_->OnSharing(report.sharing_given_up, clock_.Now());
}

}  // namespace troupe
