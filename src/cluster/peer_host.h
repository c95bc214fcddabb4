// Answers the calls of peers with the experts that are held, on a thread of its own beside the
// passes, or whenever a test says. A long call is answered in parts, between which others have
// their turn, that of whoever had the fewest rows computed. A call that finds too many before it is
// refused at once. Which peers are served at all is decided by the node.
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <thread>
#include <vector>

#include "base/clock.h"
#include "base/fair_queue.h"
#include "base/mutex.h"
#include "cluster/answer_rows.h"
#include "cluster/calls/running_line.h"
#include "cluster/face/running_node.h"
#include "cluster/peer_calls.h"
#include "cluster/peer_outbox.h"
#include "cluster/received_rows.h"
#include "cluster/wire/ask.h"
#include "runtime/expert_host.h"

namespace troupe {

class PeerHost {
 public:
  struct Options {
    std::size_t most_waiting = 16;                   // calls of each peer
    std::size_t most_bytes = std::size_t{64} << 20;  // of all of them
    // Rows of a large answer are on their way while the next ones are computed.
    std::size_t most_of_one_message = std::size_t{256} << 10;
    // Of its thread: where own passes want the same processor, peers get a fourth of it.
    int lower_priority = kLowerPriority;
  };
  static constexpr int kLowerPriority = 5;  // 1.25^5 is about 3

  // Computes an expert as ExpertHost does.
  using Compute = std::function<Status(ExpertId id, const Activations& input,
                                       std::span<const std::uint32_t> rows, std::span<float> out)>;

  // Without a thread: somebody calls AnswerNext. All must outlive it.
  PeerHost(CallShape shape, HeldExperts& held, Compute compute, SendFrame send, const Clock& clock,
           const Options& options);
  // kResourceExhausted: the system gives no thread.
  static Result<std::unique_ptr<PeerHost>> Create(CallShape shape, HeldExperts& held,
                                                  std::unique_ptr<ExpertHost> computes,
                                                  SendFrame send, const Clock& clock,
                                                  const Options& options);
  ~PeerHost();
  PeerHost(const PeerHost&) = delete;
  PeerHost& operator=(const PeerHost&) = delete;

  // Nothing is sent any more; what still comes is forgotten.
  void Stop();

  // Any thread; they never wait for a call to be computed.
  void OnAsk(LinkId link, std::vector<std::byte> frame);
  void OnCancel(LinkId link, PeerCallId call);
  void OnGone(LinkId link);

  // Computes one part of the call whose turn it is. False: none waits. Not on two threads at once.
  bool AnswerNext();

  std::size_t waiting() const;
  HostCounters counters() const;
  // Of an expert by its rows, as long as it computes for peers.
  RunningLine computing() const;

 private:
  struct Call {
    LinkId link = 0;
    PeerCallId call = 0;
    Nanos came = 0;
    Nanos worth_until = 0;
    std::vector<std::byte> frame;
    std::size_t done = 0;  // experts
    Nanos worked = 0;      // on them

    std::size_t size() const { return frame.size(); }
  };

  void Main();
  // One part of it.
  void Answer(Call call);
  std::optional<PeerAskRefused> ProblemOf(const PeerAsk& ask) const;
  void Refuse(LinkId link, PeerAskRefused refused);
  std::size_t ComputePart(const Call& call, const PeerAsk& ask, const Activations& rows);

  const CallShape shape_;
  HeldExperts& held_;
  const Compute compute_;
  const SendFrame send_;
  const Clock& clock_;
  const std::size_t most_of_one_message_;
  const int lower_priority_;

  // The thread's:
  ReceivedRows rows_;
  AnswerRowWriter writer_;
  std::vector<std::uint32_t> which_;

  mutable Mutex mu_;
  CondVar came_;
  FairQueue<Call> queue_ TROUPE_GUARDED_BY(mu_);
  HostCounters counters_ TROUPE_GUARDED_BY(mu_);
  RunningLine computing_ TROUPE_GUARDED_BY(mu_);
  // A part is computed of this call of that link; none: nobody wants the rest.
  std::optional<std::pair<LinkId, PeerCallId>> under_way_ TROUPE_GUARDED_BY(mu_);
  bool stopping_ TROUPE_GUARDED_BY(mu_) = false;
  std::thread thread_;  // last: it uses the others
};

}  // namespace troupe
