// All of a node that is neither a thread, nor a socket, nor an engine: the state machine that
// decides (node_core.h), its place in the store, calls to peers and for them, experts on their way,
// checks of answers. What comes over links is handed to the part that it is for, and what the state
// machine decides is done.
//
// One thread at a time. Time comes in; links, engine and store are ports. So cluster_node.h runs it
// on real ones, and a virtual cluster, from a seed, on others.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "base/clock.h"
#include "base/status.h"
#include "cluster/face/running_node.h"
#include "cluster/members/membership.h"
#include "cluster/migration_progress.h"
#include "cluster/node_core.h"
#include "cluster/node_engine.h"
#include "cluster/peer_calls.h"
#include "cluster/peer_directory.h"
#include "cluster/peer_host.h"
#include "cluster/piece_giver.h"
#include "cluster/second_opinion.h"
#include "cluster/speed_news.h"
#include "cluster/spot_checker.h"
#include "cluster/step_fetcher.h"
#include "cluster/transport/frame_links.h"
#include "cluster/trouble_news.h"
#include "cluster/unreachable_peers.h"

namespace troupe {

// By the grid's index.
std::vector<std::uint8_t> HeldFlags(const HeldExperts& held);

class NodeParts {
 public:
  // All must outlive it. Calls and host have threads of their own.
  struct Ports {
    FrameLinks& links;
    NodeEngine& engine;
    PeerDirectory& directory;
    PeerCalls& calls;
    PeerHost& host;
    HeldExperts& held;
    const ExpertLayouts& layouts;
    std::function<std::optional<std::uint64_t>(ExpertId id)> checksum_of;  // if it is known
    std::function<void(const std::string& line)> say;
    std::function<void(const Status& why)> fail;    // once; may be empty
    std::size_t piece_bytes = 64 << 10;             // of an expert, in one message
    std::function<std::string()> log_trouble = {};  // as in ClusterOptions
  };

  NodeParts(NodeSelf self, NodeOptions options, Ports ports, Nanos now);

  // Where a store says who the nodes are: before all else.
  void Join(const MembershipOptions& member, KvStore& store, Nanos now);
  void OnStore(const KvEvent& event, Nanos now);
  // Dials whom it knows. An error: an address that cannot be dialled.
  Status Begin(Nanos now);
  // As NodeCore's: what comes of it, in words.
  Result<std::string> Drain(Nanos now);
  Result<std::string> PlanNow(Nanos now);
  // Lets in again whom it has thrown out; says how many.
  std::size_t Readmit(Nanos now);
  // Gives its place in the store back; from now on OnTime does nothing else.
  void Leave(Nanos now);
  bool HasLeft(Nanos now) const;

  // As in LinkEvents.
  void OnOpened(LinkId link, const PeerIdentity& peer, Nanos now);
  void OnFrame(LinkId link, std::vector<std::byte> frame, Nanos now);
  void OnClosed(LinkId link, const Status& why, Nanos now);
  void OnUnreachable(LinkId link, const Status& why, Nanos now);

  // What came of what the engine was asked for.
  void OnHeld(const Status& how, Nanos now);
  void ReleaseLater(const ReleaseStep& step) { to_release_.push_back(step); }
  void OnChecked(const SpotCheck& check, Result<SpotResult> result, Nanos now);
  void OnForgotten(bool all) { forgetting_ = !all; }
  void OnMeasured(double disk_bytes_per_second);
  void OnSharing(bool given_up, Nanos now);
  void OnPlanChosen(Result<PlanChoice> choice, Nanos now);

  // Looks at what is due.
  void OnTime(Nanos now);
  // When OnTime has something to do for experts on their way.
  std::optional<Nanos> NextTime() const {
    return leaving_since_ ? std::nullopt : fetcher_.NextTime();
  }

  NodeCore& core() { return core_; }
  const NodeCore& core() const { return core_; }
  const Membership* membership() const { return membership_.get(); }  // null: the nodes are a list
  const UnreachablePeers& unreachable() const { return unreachable_; }
  const CheckCounters& checks() const { return checks_; }
  const FetchCounters& fetched() const { return fetcher_.counters(); }
  bool fetches() const { return fetching_.has_value(); }
  std::uint64_t given_bytes() const { return giver_.bytes(); }
  const MigrationProgress& migration() const { return migration_; }

 private:
  bool IsDialled(LinkId link) const;
  void Dial(const std::string& address);
  void Send(LinkId link, Frame frame);
  void Perform(Nanos now);
  void Perform(NodeAction& action, Nanos now);
  void LookAtMembership(Nanos now);
  void Carry(HoldingStep step);
  void GoOnFetching(Nanos now);
  void LookAtMigration(Nanos now);
  void LookAtChecks(Nanos now);
  bool AskAnother(const SpotCheck& check, std::vector<float> own, Nanos now);
  void TakeOpinion(const SecondOpinion::Outcome& opinion, Nanos now);
  void ThrowOut(const SpotCheck& check, Nanos now);
  void SayOwnWrong(ExpertId id);
  NodeMeasures Measured() const;
  SendFrame Sender() {
    return [this](LinkId link, std::vector<std::byte> frame) {
      return ports_.links.Send(link, std::move(frame));
    };
  }

  const Ports ports_;
  const std::string cluster_;
  NodeCore core_;
  std::unique_ptr<Membership> membership_;
  std::map<std::string, LinkId> dialled_;
  UnreachablePeers unreachable_;
  SpeedNews speed_news_;
  TroubleNews trouble_news_;
  Status dial_problem_;
  bool failed_ = false;
  CheckCounters checks_;
  SecondOpinion second_opinion_;
  std::set<ExpertId> own_wrong_;  // that were told of
  std::size_t checking_ = 0;      // of the engine's, not done yet
  bool forgetting_ = false;
  double disk_bytes_per_second_ = 0;
  std::vector<ReleaseStep> to_release_;  // again
  PieceGiver giver_;
  StepFetcher fetcher_;
  std::optional<HoldStep> fetching_;  // the step that it fetches for
  MigrationProgress migration_;
  std::uint64_t migration_of_ = 0;  // what was changed when it was looked at last
  Nanos count_at_;
  std::optional<Nanos> leaving_since_;
};

}  // namespace troupe
