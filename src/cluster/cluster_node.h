// A node of a cluster, alive: links to peers, the state machine that decides (node_core.h), an
// engine that asks its peers and answers them, and etcd where it says who the nodes are. What it
// does, it does on the links' thread, etcd's and two of its own, one of which chooses plans; what
// concerns the engine, between two passes.
#pragma once

#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "base/clock.h"
#include "base/mutex.h"
#include "base/status.h"
#include "cluster/etcd/etcd_store.h"
#include "cluster/face/running_node.h"
#include "cluster/members/membership.h"
#include "cluster/node_core.h"
#include "cluster/peer_calls.h"
#include "cluster/peer_directory.h"
#include "cluster/peer_host.h"
#include "cluster/piece_giver.h"
#include "cluster/second_opinion.h"
#include "cluster/spot_checker.h"
#include "cluster/step_fetcher.h"
#include "cluster/transport/peer_links.h"
#include "cluster/unreachable_peers.h"
#include "runtime/engine.h"

namespace troupe {

class ClusterNode final : public RunningNode, private LinkEvents {
 public:
  static Result<std::unique_ptr<ClusterNode>> Open(Engine& engine, ClusterOptions options);
  ~ClusterNode() override;
  ClusterNode(const ClusterNode&) = delete;
  ClusterNode& operator=(const ClusterNode&) = delete;

  Status Begin(BetweenPasses between) override;
  ClusterState State() const override;
  ClusterHoldings Holdings() const override;
  void Drain() override;
  Status PlanNow() override;

 private:
  ClusterNode(Engine& engine, ClusterOptions options, CallShape shape);

  void OnOpened(LinkId link, const PeerIdentity& peer) override;
  void OnFrame(LinkId link, std::span<const std::byte> frame) override;
  void OnClosed(LinkId link, const Status& why) override;
  void OnUnreachable(LinkId link, const Status& why) override;

  void Main();
  bool HasLeft() const TROUPE_REQUIRES(mu_);
  void OnStore(const KvEvent& event);
  void LookAtMembership() TROUPE_REQUIRES(mu_);
  void Perform() TROUPE_REQUIRES(mu_);
  void Send(LinkId link, Frame frame);
  void Say(const std::string& line);
  void Fail(const std::string& why) TROUPE_REQUIRES(mu_);
  void ChooseMain();
  bool IsDialled(LinkId link) const TROUPE_REQUIRES(mu_);
  void Dial(const std::string& address) TROUPE_REQUIRES(mu_);
  void Carry(HoldingStep step) TROUPE_REQUIRES(mu_);
  void GoOnFetching(Nanos now) TROUPE_REQUIRES(mu_);
  void ReleaseOnEngine(const ReleaseStep& step);
  void HoldOnEngine(const HoldStep& step, const FetchedExperts& fetched);
  void GoOnHoldingOnEngine();
  void Held(const Status& how);
  void CheckOnEngine(const SpotCheck& check);
  bool AskAnother(const SpotCheck& check, std::vector<float> own) TROUPE_REQUIRES(mu_);
  void TakeOpinion(const SecondOpinion::Outcome& opinion) TROUPE_REQUIRES(mu_);
  void ThrowOut(const SpotCheck& check) TROUPE_REQUIRES(mu_);
  void SayOwnWrong(ExpertId id) TROUPE_REQUIRES(mu_);
  void ForgetOnEngine();
  void MeasureOnEngine();
  void TakeDistribution(const OffloadReport& report) TROUPE_REQUIRES(mu_);
  NodeMeasures Measured() const TROUPE_REQUIRES(mu_);
  std::uint64_t HoldingsVersion() const TROUPE_REQUIRES(mu_);
  std::vector<std::uint8_t> HeldNow() const;

  Engine& engine_;
  const ClusterOptions options_;
  const MonotonicClock clock_;
  PeerDirectory directory_;
  std::unique_ptr<PeerLinks> links_;
  PeerCalls calls_;
  std::unique_ptr<PeerHost> host_;
  SpotChecker checker_;  // the engine's thread's
  BetweenPasses between_;

  struct Said {
    Nanos at = 0;
    std::string text;
  };
  mutable Mutex said_mu_;
  std::deque<Said> said_ TROUPE_GUARDED_BY(said_mu_);

  mutable Mutex mu_;
  CondVar changed_;
  std::unique_ptr<NodeCore> core_ TROUPE_GUARDED_BY(mu_);
  std::unique_ptr<Membership> membership_ TROUPE_GUARDED_BY(mu_);  // null: the nodes are a list
  std::map<std::string, LinkId> dialled_ TROUPE_GUARDED_BY(mu_);
  UnreachablePeers unreachable_ TROUPE_GUARDED_BY(mu_);
  Status dial_problem_ TROUPE_GUARDED_BY(mu_);
  bool failed_ TROUPE_GUARDED_BY(mu_) = false;
  bool stopping_ TROUPE_GUARDED_BY(mu_) = false;  // the links end, and nothing follows from it
  CheckCounters checks_ TROUPE_GUARDED_BY(mu_);
  SecondOpinion second_opinion_ TROUPE_GUARDED_BY(mu_);
  std::set<ExpertId> own_wrong_ TROUPE_GUARDED_BY(mu_);  // that were told of
  std::size_t checking_ TROUPE_GUARDED_BY(mu_) = 0;      // of the engine's thread, not done yet
  bool forgetting_ TROUPE_GUARDED_BY(mu_) = false;
  double disk_bytes_per_second_ TROUPE_GUARDED_BY(mu_) = 0;
  std::vector<DistributionReport> distribution_ TROUPE_GUARDED_BY(mu_);
  std::vector<JudgedLayer> judged_ TROUPE_GUARDED_BY(mu_);
  std::vector<ReleaseStep> to_release_ TROUPE_GUARDED_BY(mu_);  // of the engine's thread
  // Experts that are read from the own disk to be held; 0: none. It is looked at between passes.
  std::size_t reading_ TROUPE_GUARDED_BY(mu_) = 0;
  bool looking_ TROUPE_GUARDED_BY(mu_) = false;  // it is about to be
  std::uint64_t experts_read_ TROUPE_GUARDED_BY(mu_) = 0;
  PieceGiver giver_ TROUPE_GUARDED_BY(mu_);
  StepFetcher fetcher_ TROUPE_GUARDED_BY(mu_);
  std::optional<HoldStep> fetching_ TROUPE_GUARDED_BY(mu_);  // the step that it fetches for
  std::optional<Nanos> leaving_since_ TROUPE_GUARDED_BY(mu_);
  CondVar choose_;
  std::optional<PlanJob> to_choose_ TROUPE_GUARDED_BY(mu_);  // of a thread of its own
  std::thread thread_, chooser_;
  std::unique_ptr<EtcdStore> etcd_;  // last: its thread tells of what the others are told
};

}  // namespace troupe
