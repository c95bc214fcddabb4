// A node of a cluster, alive: its parts (node_parts.h) on real links, an engine that asks its peers
// and answers them, and etcd where it says who the nodes are. What it does, it does on the links'
// thread, etcd's and two of its own, one of which chooses plans; what concerns the engine, between
// two passes.
#pragma once

#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "base/clock.h"
#include "base/mutex.h"
#include "base/status.h"
#include "cluster/etcd/etcd_store.h"
#include "cluster/face/running_node.h"
#include "cluster/node_engine.h"
#include "cluster/node_parts.h"
#include "cluster/peer_calls.h"
#include "cluster/peer_directory.h"
#include "cluster/peer_host.h"
#include "cluster/spot_checker.h"
#include "cluster/transport/peer_links.h"
#include "runtime/engine.h"

namespace troupe {

class ClusterNode final : public RunningNode, private LinkEvents, private NodeEngine {
 public:
  static Result<std::unique_ptr<ClusterNode>> Open(Engine& engine, ClusterOptions options);
  ~ClusterNode() override;
  ClusterNode(const ClusterNode&) = delete;
  ClusterNode& operator=(const ClusterNode&) = delete;

  Status Begin(BetweenPasses between) override;
  ClusterState State() const override;
  ClusterHoldings Holdings() const override;
  Result<std::string> Drain() override;
  Result<std::string> PlanNow() override;
  Status Readmit() override;

 private:
  ClusterNode(Engine& engine, ClusterOptions options, CallShape shape);

  void OnOpened(LinkId link, const PeerIdentity& peer) override;
  void OnFrame(LinkId link, std::span<const std::byte> frame) override;
  void OnClosed(LinkId link, const Status& why) override;
  void OnUnreachable(LinkId link, const Status& why) override;

  // cluster_node_engine.cc: what the parts ask for, and where it is done.
  void Release(const ReleaseStep& step) override TROUPE_REQUIRES(mu_);
  void Hold(HoldStep step, FetchedExperts fetched) override TROUPE_REQUIRES(mu_);
  void Check(SpotCheck check) override TROUPE_REQUIRES(mu_);
  void ForgetKept() override TROUPE_REQUIRES(mu_);
  void Measure() override TROUPE_REQUIRES(mu_);
  void Choose(PlanJob job) override TROUPE_REQUIRES(mu_);
  void Wake() override { changed_.NotifyAll(); }
  void ReleaseOnEngine(const ReleaseStep& step);
  void HoldOnEngine(const HoldStep& step, const FetchedExperts& fetched);
  void GoOnHoldingOnEngine();
  void Held(const Status& how);
  void CheckOnEngine(const SpotCheck& check);
  void ForgetOnEngine();
  void MeasureOnEngine();
  void TakeDistribution(const OffloadReport& report) TROUPE_REQUIRES(mu_);

  Status OpenParts(const CallShape& shape);
  // Fails if it has expired.
  Status LookAtCertificate();
  SendFrame Sender();
  void Main();
  void OnStore(const KvEvent& event);
  void SayWhereItListens();
  void SayWhatIsNotProtected();
  void Say(const std::string& line);
  void ChooseMain();
  std::uint64_t HoldingsVersion() const TROUPE_REQUIRES(mu_);

  Engine& engine_;
  const ClusterOptions options_;
  const MonotonicClock clock_;
  PeerDirectory directory_;
  std::unique_ptr<PeerLinks> links_;
  PeerCalls calls_;
  std::unique_ptr<PeerHost> host_;
  SpotChecker checker_;  // the engine's thread's
  BetweenPasses between_;
  std::int64_t certificate_expires_ = 0;  // of peers' links; 0: there is none
  std::string certificate_remark_;

  struct Said {
    Nanos at = 0;
    std::string text;
  };
  mutable Mutex said_mu_;
  std::deque<Said> said_ TROUPE_GUARDED_BY(said_mu_);

  mutable Mutex mu_;
  CondVar changed_;
  std::unique_ptr<NodeParts> parts_ TROUPE_GUARDED_BY(mu_);
  bool stopping_ TROUPE_GUARDED_BY(mu_) = false;  // the links end, and nothing follows from it
  bool leaving_ TROUPE_GUARDED_BY(mu_) = false;
  std::vector<DistributionReport> distribution_ TROUPE_GUARDED_BY(mu_);
  std::vector<JudgedLayer> judged_ TROUPE_GUARDED_BY(mu_);
  // Experts that are read from the own disk to be held; 0: none. It is looked at between passes.
  std::size_t reading_ TROUPE_GUARDED_BY(mu_) = 0;
  bool looking_ TROUPE_GUARDED_BY(mu_) = false;  // it is about to be
  std::uint64_t experts_read_ TROUPE_GUARDED_BY(mu_) = 0;
  CondVar choose_;
  std::optional<PlanJob> to_choose_ TROUPE_GUARDED_BY(mu_);  // of a thread of its own
  std::thread thread_, chooser_;
  std::unique_ptr<EtcdStore> etcd_;  // last: its thread tells of what the others are told
};

}  // namespace troupe
