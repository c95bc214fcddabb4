// A server's own disk: what a scenario says of it, and the lane on which the server's loads come,
// one after the other, as the flow of misses sees it (expert/flow/load_port.h). Has no clock of its
// own: it is told what time it is.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "expert/flow/load_port.h"
#include "placement/latency_model.h"
#include "placement/problem.h"
#include "sim/replay/replay_link.h"

namespace troupe {

struct OwnDisk {
  double bytes_per_second = 1;
  double latency_seconds = 0;    // of a load that finds it idle
  std::uint32_t free_slots = 0;  // for experts that the placement does not give the server
  std::string policy = "echo";   // which of these leaves
  // What the next layer will choose is read ahead, as far as the engine's rules allow: what a
  // perfect predictor would do.
  bool reads_ahead = false;

  bool operator==(const OwnDisk&) const = default;
};

class DiskLane final : public LoadPort {
 public:
  // `experts` must outlive it. `speed` is of the device that computes what has come.
  DiskLane(const ExpertTable& experts, const OwnDisk& disk, const LinearCost& expert, double speed);

  void Begin(ExpertId id, std::uint32_t slot, ExpertCopy copy, Urgency urgency) override;
  void Promote(ExpertId id) override { link_.Promote(id); }
  CallOff Cancel(ExpertId id) override {
    return link_.Cancel(id) ? CallOff::kGone : CallOff::kTooLate;
  }
  double SecondsFor(std::uint32_t layer) const override;
  AnswerCosts CostsFor(std::uint32_t layer) const override;
  Bytes BytesLeft(ExpertId id) const override;
  double SecondsLeft(ExpertId id) const override { return link_.SecondsLeft(id, now_); }
  double SecondsHeld(std::uint32_t layer) const override { return SecondsFor(layer); }
  bool idle() const override { return at_once_.empty() && link_.NextEnd() == ReplayLink::kNothing; }

  void set_now(double now) { now_ = now; }
  // Who else could compute the layer that asks next, by expert. What they are of must outlive it.
  void set_places(std::span<const Place> places,
                  std::span<const std::span<const std::uint32_t>> holders) {
    places_ = places;
    holders_ = holders;
  }
  // From now on loads end as soon as they begin, or no more.
  void set_at_once(bool at_once) { takes_no_time_ = at_once; }

  std::vector<LoadEnd> TakeEnded();
  double NextEnd() const { return link_.NextEnd(); }
  std::uint64_t loads() const { return loads_; }
  double busy_seconds() const { return link_.busy_seconds(); }

 private:
  double SecondsOf(ExpertId id) const;

  const ExpertTable& experts_;
  const OwnDisk disk_;
  LocalWork local_;
  ReplayLink link_;
  double now_ = 0;
  bool takes_no_time_ = false;
  std::vector<LoadEnd> at_once_;
  std::span<const Place> places_;
  std::span<const std::span<const std::uint32_t>> holders_;
  std::uint64_t loads_ = 0;  // that took time
};

}  // namespace troupe
