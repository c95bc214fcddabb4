// One run of the simulator (simulation.h): its state, its events and what each of them does. What a
// server's prompts wait for is in simulation_queues.cc, the passes of a prompt in
// simulation_layers.cc, calls of experts on other servers in simulation_calls.cc, what servers with
// disks of their own do otherwise in simulation_disks.cc, and how experts move in
// simulation_moves.cc.
#pragma once

#include <cstdint>
#include <deque>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "sim/arrivals.h"
#include "sim/devices.h"
#include "sim/event_queue.h"
#include "sim/expert_work.h"
#include "sim/link_pool.h"
#include "sim/migrator.h"
#include "sim/offload_work.h"
#include "sim/own_experts.h"
#include "sim/pool.h"
#include "sim/simulation.h"
#include "sim/timeline.h"

namespace troupe {

class SimulationRun {
 public:
  // The setup has passed Validate, and must outlive it.
  explicit SimulationRun(const SimulationSetup& setup);
  Result<SimulationResult> Run(const SimulationProgress& progress) &&;

 private:
  enum EventKind : std::uint32_t {
    kArrival,        // subject: server
    kDenseDone,      // subject: prompt
    kLocalJobDone,   // subject: prompt
    kTransferEnd,    // subject: link, detail: its version when this was computed
    kDelivered,      // subject: call
    kCallJobDone,    // subject: call
    kUnanswered,     // subject: call, whose host was lost
    kMigrationTime,  // the interval is over
    kMigrationLoad,  // an expert has been loaded
    kFetched,        // subject: call, which brings an expert that moves
    kLoss,           // subject: server
    kLossNoticed,    // subject: server
    kReturn,         // subject: server
    kOwnDense,       // subject: server, detail: its life
    kOwnComputed,    // subject: server, detail: its life
    kOwnTime,        // subject: server, detail: the number of its alarm
  };
  struct Prompt {
    PromptRequest request;
    std::uint32_t server = 0;  // that works on it
    std::uint32_t users = 0;   // server whose users ask
    std::uint32_t life = 0;    // of the server, when it began
    DeviceIndex device = 0;    // of the dense part
    std::uint32_t tokens = 0;  // of the pass under way
    std::uint32_t passed = 0;  // tokens of earlier passes
    std::uint32_t layer = 0;
    std::uint32_t outstanding = 0;  // jobs and calls of the layer
    double layer_began = 0;
  };
  struct Call {
    std::uint32_t prompt = 0;
    std::uint32_t host = 0, home = 0;
    std::uint32_t outstanding = 0;
    std::uint32_t assignments = 0;
    bool returning = false;
    bool moves = false;       // an expert, from its home to its host
    std::uint32_t links = 0;  // that its transfer has not passed yet
    std::uint32_t life = 0;   // of the host, when it was called
    std::uint32_t home_life = 0;
    double disk_seconds = 0;  // that its experts take to be read at home
    double own_seconds = 0;   // and then to be computed
    double began = 0;
    double bytes_there = 0, bytes_back = 0;
    std::vector<DeviceJob> jobs;
    OwnExperts::Call own;  // if its server has a disk of its own
    CallTimes times;
  };
  struct Waiting {
    PromptRequest request;
    std::uint32_t users = 0;  // server whose users ask
    bool again = false;       // its server was lost
  };
  struct Server {
    std::deque<Waiting> waiting;
    std::uint32_t active = 0;
    std::optional<PromptRequest> coming;
    Arrivals arrivals;
  };
  struct Own {
    std::unique_ptr<OwnExperts> experts;  // of its present life
    DiskResult before;                    // of those before it
    double wakes_at = OwnExperts::kNever;
    std::uint64_t alarm = 0;  // its number
  };

  void Handle(const SimEvent& event);

  // Experts that move.
  void BeginMove(const std::optional<MigrationLoad>& load);
  std::optional<std::uint32_t> SourceOf(const MigrationLoad& load) const;
  void EndFetch(std::uint32_t call);
  void LoadMoved();

  // Who works on a prompt.
  void DrawArrival(std::uint32_t server);
  void Arrive(std::uint32_t server);
  void Enqueue(const Waiting& waiting);
  void Lose(std::uint32_t server);
  void Return(std::uint32_t server);
  // Whether the server that worked on it was lost since; then it begins again elsewhere.
  bool BeganAgain(std::uint32_t id);
  std::uint32_t WorkerFor(std::uint32_t users) const;
  void StartWaiting(std::uint32_t server);

  // Its passes and their layers.
  void StartPass(std::uint32_t id, std::uint32_t tokens);
  void StartLayer(std::uint32_t id);
  void StartExperts(std::uint32_t id);
  void StartAlone(std::uint32_t id);
  void StartFromDisk(std::uint32_t prompt, const ExpertWork::Visit& visit);
  void StartJobs(std::uint32_t id, std::span<const DeviceJob> jobs);
  void EndPart(std::uint32_t id);
  void EndLayer(std::uint32_t id);
  void EndPass(std::uint32_t id);
  void Finish(std::uint32_t id);

  // Experts that other servers compute for it.
  void StartCall(std::uint32_t prompt, const ExpertWork::Visit& visit, OwnExperts::Call own = {});
  void StartTransfer(std::uint32_t from, std::uint32_t to, double bytes, std::uint32_t call);
  void StartOnLink(std::uint32_t link, double bytes, std::uint32_t call);
  void EndTransfer(std::uint32_t link, std::uint32_t version);
  void Deliver(std::uint32_t id);
  void EndCallJob(std::uint32_t id);
  bool HostIsLost(const Call& call) const { return losses_.LifeOf(call.host) != call.life; }
  bool HomeIsLost(const Call& call) const { return losses_.LifeOf(call.home) != call.home_life; }
  void WaitInVain(std::uint32_t id);
  void ReadInstead(std::uint32_t id);

  // Servers with disks of their own.
  bool IsOfEarlierLife(const SimEvent& event);
  void BeginLife(std::uint32_t server);
  void EndLife(std::uint32_t server);
  void TellOfLoss(std::uint32_t server);
  void JoinPass(std::uint32_t id);
  void StartSharedPass(std::uint32_t server);
  void EndSharedPass(std::uint32_t server);
  void StartOwnExperts(std::uint32_t id);
  void GoOn(std::uint32_t server);
  void SetAlarm(std::uint32_t server);
  void Wake(std::uint32_t server, std::uint64_t alarm);
  void EndOwnCall(std::uint32_t id);
  // A call that nobody waits for any more: it was cancelled, or who asked was lost.
  bool DropsUnwanted(std::uint32_t id);

  // When the device will have done `seconds` of work that comes now.
  double Occupy(DeviceIndex device, double seconds) {
    return devices_.Occupy(device, events_.now(), seconds);
  }
  TimelineSample& Sample() { return timeline_.At(events_.now()); }
  bool AllAnswered() const { return answered_ == arrived_ && coming_ == 0; }

  const SimulationSetup& setup_;
  EventQueue events_;
  ExpertMap map_;
  ExpertWork work_;
  std::optional<OffloadWork> offload_;  // if servers work alone
  std::vector<Own> own_;                // by server; none: they have no disks of their own
  LinkPool links_;
  Migrator migrator_;
  MigrationLoad moving_;  // under way, one after the other
  Losses losses_;
  std::optional<std::uint32_t> spared_;  // as it was the last one; it may be lost again later
  std::vector<Server> servers_;
  Devices devices_;
  Pool<Prompt> prompts_;
  Pool<Call> calls_;
  SimulationResult result_;
  Timeline timeline_;
  std::uint64_t drawn_ = 0, arrived_ = 0, answered_ = 0, coming_ = 0, stale_ = 0;
};

}  // namespace troupe
