// The replay's link (replay_link.h) behind the port through which MissFlow loads, the clock of
// both, and what loading and computing are taken to cost.
#pragma once

#include <algorithm>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "expert/flow/lane_balance.h"
#include "expert/flow/load_port.h"
#include "sim/replay/replay_link.h"
#include "trace/trace_header.h"

namespace troupe {

struct ReplayCosts {
  double latency_seconds = 0;
  std::vector<double> load_seconds;         // of an expert's bytes, by MoE layer; empty: none
  std::vector<std::uint64_t> expert_bytes;  // by MoE layer, in place of the trace's
  double layer_first_seconds = 0;           // of a layer without its experts: a pass's first token
  double layer_further_seconds = 0;         // each further one
  double expert_first_seconds = 0;          // of an expert
  double expert_further_seconds = 0;
  // Share of an expert's bytes with which its computing begins, that of the same share of it; 1: it
  // begins when all are there.
  double begin_share = 1;
  // Where a missing expert can be computed where it lies, beside the link: what one takes so. The
  // two lanes then share a layer's misses, as MissFlow plans it: the heaviest are loaded, by the
  // weights of their routes.
  std::optional<double> second_lane_seconds;

  double ExpertSeconds(std::uint32_t tokens) const {
    return expert_first_seconds + (tokens - 1) * expert_further_seconds;
  }
};

class ReplayLoads final : public LoadPort {
 public:
  ReplayLoads(const TraceHeader& header, const ReplayCosts& costs);

  void Begin(ExpertId id, std::uint32_t slot, ExpertCopy copy, Urgency urgency) override;
  void Promote(ExpertId id) override { link_.Promote(id); }
  CallOff Cancel(ExpertId id) override {
    return link_.Cancel(id) ? CallOff::kGone : CallOff::kTooLate;
  }
  double SecondsFor(std::uint32_t layer) const override;
  AnswerCosts CostsFor(std::uint32_t layer) const override;
  Bytes BytesLeft(ExpertId id) const override;
  double SecondsLeft(ExpertId id) const override { return link_.SecondsLeft(id, now_); }
  // The link stops for nobody.
  double SecondsHeld(std::uint32_t layer) const override { return seconds_[layer]; }
  bool idle() const override { return link_.NextEnd() == ReplayLink::kNothing; }

  void Pass(double seconds) { now_ += seconds; }
  void PassToNextEnd() { now_ = std::max(now_, link_.NextEnd()); }
  double now() const { return now_; }
  // What has ended by now and was not taken yet.
  std::span<const LoadEnd> TakeEnded();

  // That the link was busy, up to now.
  double reading_seconds() const { return link_.BusySeconds(now_); }
  std::uint64_t loads() const { return loads_; }
  std::uint64_t bytes() const { return bytes_; }

 private:
  static constexpr std::size_t kLoadsRemembered = 64;

  // The speed of the link is known by its last loads, as it would be where nobody tells.
  double Rate(std::uint32_t layer) const;

  const ReplayCosts& costs_;
  ReplayLink link_;
  std::vector<double> seconds_;        // by layer of the model
  std::vector<std::uint64_t> weight_;  // in bytes, by layer too; empty: not known
  std::vector<Place> places_;
  double now_ = 0;
  std::vector<ExpertId> ids_;
  std::vector<LoadEnd> ended_;
  std::uint64_t loads_ = 0, bytes_ = 0;
  WindowMean mean_{kLoadsRemembered};
};

}  // namespace troupe
