// How a server with a disk of its own answers the experts of a pass: with what the placement gives
// it, with what its free slots keep of what it has read, from its disk, and by calls to others.
// What decides is what decides on a live node, the same objects: MissFlow with its planner and
// cache, and of a cluster's calls who is asked (CallFlow), what they are expected to take
// (PeerSpeed), and whether that is worth it at all (DistributionJudge). The simulation has the
// clock, the links and the devices; it tells what happens, and asks what follows.
#pragma once

#include <cstdint>
#include <limits>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <span>
#include <vector>

#include "cluster/calls/call_flow.h"
#include "cluster/calls/peer_speed.h"
#include "expert/flow/distribution_judge.h"
#include "expert/flow/miss_flow.h"
#include "expert/forecast/oracle.h"
#include "sim/expert_work.h"
#include "sim/own_disk.h"
#include "sim/result.h"
#include "sim/shared_pass.h"

namespace troupe {

// What a server's users ask of others and of its disk, as the simulation knows it.
struct OwnExpertsFacts {
  const PlacementProblem& problem;  // must outlive what is made of it, as must the map
  const ExpertMap& map;
  ServingCosts costs;
  OwnDisk disk;
  std::uint32_t server = 0;
  std::uint32_t prompts_at_once = 1;
};

class OwnExperts {
 public:
  explicit OwnExperts(const OwnExpertsFacts& facts);
  OwnExperts(const OwnExperts&) = delete;
  OwnExperts& operator=(const OwnExperts&) = delete;

  SharedPass& pass() { return pass_; }
  // A pass begins if somebody is ready and none is under way; says whether one has.
  bool BeginPass(double now);

  // A layer chooses: its (token, expert) pairs by who answers them.
  struct Pairs {
    std::uint64_t local = 0, remote = 0, loaded = 0;
  };
  Pairs Ask(std::uint32_t layer, double now);
  // Loads have ended, or calls have become late: before anything else is asked at that time.
  void Settle(double now);

  // What is to be sent now.
  struct Call {
    PeerCallId id = 0;
    std::vector<std::uint32_t> experts;
    ExpertWork::Visit visit;
  };
  std::vector<Call> TakeCalls(double now);
  // A call's answer has come. `times` without its row_bytes.
  void OnAnswered(const Call& call, CallTimes times, double now);
  // That server was lost: what it was asked for, others or the disk answer.
  void OnLost(std::uint32_t host, double now);
  // Whether nobody waits for a call any more, which is then forgotten.
  bool TakeCancelled(PeerCallId id);

  // Seconds of computing that can begin now, if it has not begun; none: nothing has come.
  std::optional<double> Compute(double now);
  void OnComputed() { computes_ = false; }
  bool LayerIsDone() const;
  void EndLayer(double now);

  // When to settle next; kNever if nothing is under way.
  static constexpr double kNever = std::numeric_limits<double>::infinity();
  double NextTime() const;

  DiskResult Counts() const;

 private:
  struct SentCall {
    std::uint32_t host = 0;
    double at = 0;
  };

  void HoldPlaced();
  void Collect(double now);
  // Who else holds what the layer lacks, and what each of them is expected to take.
  void FindPlaces(std::uint32_t layer, std::span<const ExpertDemand> demands, double now);
  void AskOthers(double now);
  std::vector<std::uint32_t> HoldersOf(ExpertIndex e) const;
  PeerSpeed& SpeedOf(std::uint32_t host, double now);
  std::optional<Oracle::Step> Foresee();
  std::unique_ptr<Predictor> MakeForesight();

  const OwnExpertsFacts facts_;
  const double speed_;  // of the device
  SharedPass pass_;
  DiskLane lane_;
  MissFlow flow_;
  CallFlow calls_;
  DistributionJudge judge_;
  std::vector<ExpertCache::Pin> held_;
  std::map<std::uint32_t, PeerSpeed> speeds_;  // by server
  std::uint32_t foreseen_ = 0;                 // the layer that the predictor is asked for next

  // The layer under way.
  std::uint32_t layer_ = 0;
  std::optional<DemandId> demand_;
  std::vector<std::uint32_t> rows_;  // by expert
  bool computes_ = false;
  std::optional<double> asked_at_;  // if it is to be judged
  std::vector<Place> places_;
  std::vector<std::uint32_t> hosts_;  // by place
  std::vector<std::vector<std::uint32_t>> places_of_;
  std::vector<std::span<const std::uint32_t>> holders_;  // by expert: places_of_

  std::map<PeerCallId, SentCall> sent_;
  std::set<PeerCallId> cancelled_;
  DiskResult result_;
};

}  // namespace troupe
