// One link: the stream that carries it now, if any, and what waits to be sent on that. A link that
// was dialled is dialled again after each end. Knows no other links (peer_links.cc) and no gRPC.
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>

#include "base/clock.h"
#include "base/mutex.h"
#include "base/status.h"
#include "cluster/transport/frame_streams.h"
#include "cluster/transport/peer_links.h"
#include "cluster/transport/redial_pause.h"
#include "cluster/transport/send_queue.h"

namespace troupe {

struct AtomicLinkCounters {
  std::atomic<std::uint64_t> frames_sent = 0, bytes_sent = 0;
  std::atomic<std::uint64_t> frames_received = 0, bytes_received = 0;
  std::atomic<std::uint64_t> opened = 0, lost = 0, unreachable = 0, refused = 0;
};

// What the links of one PeerLinks share. Outlives them.
struct LinkContext {
  TransportOptions options;
  LinkEvents* events = nullptr;
  FrameStreams* streams = nullptr;
  std::function<void(LinkId)> forget;  // an accepted link has ended
  UnsentBytes unsent{2 * options.most_unsent};
  AtomicLinkCounters counters;
};

// Send, Break, Reset, Close and traffic on any thread, all else on that of the streams.
class Link final : public StreamEvents, public std::enable_shared_from_this<Link> {
 public:
  // An accepted link has no address.
  Link(LinkContext& context, LinkId id, std::string address);

  Status Send(Frame frame);
  void Break(Frame last);
  void Reset();
  void Close();
  LinkTraffic traffic() const { return {.sent = sent_, .received = received_}; }

  void Dial();
  void SetStream(std::shared_ptr<FrameStream> stream);

  void OnOpened(const PeerIdentity& peer) override;
  void OnFrame(std::span<const std::byte> frame) override;
  void OnWritten() override;
  void OnEnded(const Status& why) override;

 private:
  void Write(FrameStream& stream, Frame frame);
  void GiveUpUnlessOpen(FrameStream& attempt);
  void DialLater(Nanos pause);

  LinkContext& context_;
  const LinkId id_;
  const std::string address_;
  const MonotonicClock clock_;
  std::atomic<std::uint64_t> sent_ = 0, received_ = 0;  // bytes
  // The thread's own.
  RedialPause pause_;
  std::string peer_;
  Nanos opened_at_ = 0;
  bool told_ = false;  // OnOpened, and OnClosed not yet

  Mutex mu_;
  std::shared_ptr<FrameStream> stream_ TROUPE_GUARDED_BY(mu_);
  SendQueue queue_ TROUPE_GUARDED_BY(mu_);
  bool open_ TROUPE_GUARDED_BY(mu_) = false;
  bool closed_ TROUPE_GUARDED_BY(mu_) = false;
  bool broken_ TROUPE_GUARDED_BY(mu_) = false;  // its connection ends, and says nothing any more
};

}  // namespace troupe
