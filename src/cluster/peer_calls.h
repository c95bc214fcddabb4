// The peers as a pass sees them (runtime/expert_peers.h): asks them for rows over their links, and
// hands out what they answer. Whom to ask when somebody is late is decided by CallFlow; here it
// meets the clock, the frames and the threads: passes call from theirs, links from another one.
#pragma once

#include <atomic>
#include <deque>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/clock.h"
#include "base/mutex.h"
#include "cluster/calls/call_flow.h"
#include "cluster/calls/late_peers.h"
#include "cluster/calls/peer_speed.h"
#include "cluster/face/node_buffers.h"
#include "cluster/peer_directory.h"
#include "cluster/peer_outbox.h"
#include "cluster/plan/activity.h"
#include "cluster/spot_sample.h"
#include "cluster/wire/answer.h"
#include "cluster/wire/ask.h"
#include "runtime/expert_peers.h"

namespace troupe {

// What all nodes of a cluster share.
struct CallShape {
  ExpertGrid grid;
  std::uint32_t width = 0;
  std::vector<RowForm> forms;  // by layer: what its experts read
};

// What calls to a peer were measured to take on their way.
struct MeasuredLink {
  std::string peer;
  double round_trip_seconds = 0;  // of an empty call
  double byte_seconds = 0;        // of each byte that it brings back besides; 0: not known
};

class PeerCalls final : public ExpertPeers {
 public:
  struct Options {
    CallRules rules;
    double verify = 0;                              // the share of answers to be checked
    std::size_t most_to_check = kMostBytesToCheck;  // bytes of them that wait
    // Bytes of answers that no pass has looked at yet. Beyond it they are dropped, as if they were
    // lost: no peer that answers what it was asked comes near.
    std::size_t most_unread = std::size_t{256} << 20;
    // Which answers are checked follows from it. None: from chance, so that no peer can foresee it.
    std::optional<std::uint64_t> seed = {};
  };

  // All must outlive it.
  PeerCalls(CallShape shape, PeerDirectory& directory, SendFrame send, const Clock& clock,
            const Options& options);

  // Of the thread that runs passes.
  std::span<const Place> Places() override;
  std::span<const std::uint32_t> HoldersOf(ExpertId id) const override;
  std::uint32_t most_rows() const override { return kMostRowsAsked; }
  void OnAsked(const ExpertBatch& batch, RowForm answers) override;
  void Ask(const ExpertBatch& batch, std::span<const AnsweredElsewhere> misses) override;
  bool AskInPlaceOfDisk(const ExpertBatch& batch, std::uint32_t expert) override;
  void OnLoaded(std::uint32_t expert) override;
  News Take() override;
  bool waiting() const override { return flow_.waiting() > 0 || !to_load_.empty(); }
  void Wait(std::optional<Nanos> longest) override;
  void Forget() override;

  // Any thread: an answer or a refusal has come, or a peer has gone.
  void OnFrame(LinkId link, std::vector<std::byte> frame);
  void OnGone(PeerIndex peer);

  // What the own users have activated since the last time. Any thread.
  std::vector<std::uint32_t> TakeActivity() { return activity_.Take(); }
  // What is to be said of peers that are late, each told once. Any thread.
  std::vector<std::string> TakeRemarks();
  // Answers to be checked, each told once. Any thread.
  std::vector<SpotCheck> TakeChecks();
  // All of the next answers of the peer of that start are to be checked. Any thread.
  void Suspect(std::uint64_t start);
  // Lives of peers whose next answers are all to be checked: never more than there are peers, but
  // for one. Any thread.
  std::size_t suspects() const;
  // Rows of answers that were to be checked and will not be: more came than fit. Any thread.
  std::uint64_t rows_not_checked() const;
  // As of the end of the last layer. Any thread.
  CallCounters counters() const;
  CallSeconds seconds() const;
  // To the peers that are here.
  std::vector<MeasuredLink> Links() const;

 private:
  struct Event {
    std::optional<PeerIndex> gone;
    LinkId link = 0;
    Nanos at = 0;
    std::vector<std::byte> frame;
  };
  struct Peer {
    std::string name;  // before speed, which shows it
    LinkId link = 0;
    std::uint64_t start = 0;
    std::uint64_t malformed_of = 0;  // the start of which a malformed answer was told
    std::unique_ptr<PeerSpeed> speed;
    ExpertBits held;
  };
  struct SentCall {
    PeerCallId call = 0;
    PeerIndex peer = 0;
    std::uint64_t layer = 0;  // which of all the layers that have asked
    Nanos sent = 0;
    RowForm answer = RowForm::kFloat;
    CallTimes times;                     // so far
    std::vector<std::uint32_t> experts;  // that it owes
  };

  void LookAtPeers();
  // Of a layer that has not asked yet.
  void Begin(const ExpertBatch& batch);
  std::vector<PeerIndex> HoldersByCost(ExpertId id, std::optional<PeerIndex> first) const;
  void Drain();
  void Handle(Event& event);
  // Whether rows of the frame were handed out, so that it must be kept.
  bool OnAnswer(const Event& event, const PeerAnswer& answer);
  bool Fits(const SentCall& call, const PeerAnswer& answer) const;
  // As floats: where they lie in the frame, or read from it.
  std::span<const float> FloatsOf(const WireRows& rows, std::size_t first, std::size_t count);
  void OnRefused(PeerCallId call);
  // Told once of each life of a peer, and counted.
  void OnMalformed(LinkId link, std::string_view how);
  void SeeWhoIsLate(Nanos now);
  void Dispatch();
  void Remember(SentCall sent);
  void SendCancels();
  void TellFigures();
  void Remark(std::string text);
  std::vector<std::byte> FrameOf(const CallToSend& call);
  void WriteRow(std::uint32_t row, std::span<std::byte> to) const;
  void MaybeKeep(const SentCall& call, const Rows& answer);

  const CallShape shape_;
  PeerDirectory& directory_;
  const SendFrame send_;
  const Clock& clock_;
  const Options options_;

  // The passes' thread's:
  CallFlow flow_;
  std::uint64_t seen_ = 0;  // version of the directory
  std::deque<Peer> peers_;  // by index; they stay where they are
  std::vector<Place> places_;
  std::vector<std::vector<PeerIndex>> holders_;  // by the grid's index
  ExpertBatch batch_;                            // of the layer under way
  RowForm answers_ = RowForm::kFloat;            // in which it takes them
  std::uint64_t layer_ = 0;                      // how many have asked
  bool has_begun_ = false;                       // the layer under way has asked
  std::vector<std::uint32_t> in_place_of_disk_;  // experts of the layer that were so asked for
  std::vector<SentCall> sent_;                   // and not answered to the end
  std::vector<std::uint32_t> place_of_;          // of the batch's rows in the message under way
  std::vector<std::uint32_t> rows_;              // of the batch in the message under way
  std::vector<std::vector<std::byte>> kept_;     // frames whose rows were handed out
  std::vector<std::vector<float>> read_;         // rows that were read from others
  std::vector<Rows> answered_;
  std::vector<std::uint32_t> to_load_, told_to_load_;
  std::vector<Event> events_;
  CallSeconds answered_seconds_;
  LatePeers late_;

  ActivityCounter activity_;
  std::atomic<bool> suspects_ = false;  // anybody, ever
  mutable Mutex mu_;
  CondVar came_;
  std::vector<Event> inbox_ TROUPE_GUARDED_BY(mu_);
  std::size_t inbox_bytes_ TROUPE_GUARDED_BY(mu_) = 0;
  CallCounters counters_ TROUPE_GUARDED_BY(mu_);
  std::uint64_t dropped_ TROUPE_GUARDED_BY(mu_) = 0, malformed_ TROUPE_GUARDED_BY(mu_) = 0;
  CallSeconds seconds_ TROUPE_GUARDED_BY(mu_);
  std::vector<MeasuredLink> links_ TROUPE_GUARDED_BY(mu_);
  SpotSample checks_ TROUPE_GUARDED_BY(mu_);
  std::vector<std::string> remarks_ TROUPE_GUARDED_BY(mu_);
};

}  // namespace troupe
