// Frames between this node and its peers, over links that this node dials or that peers open. A
// link that was dialled is dialled again whenever it is lost, and keeps its id. Frames of a link
// arrive whole, in order and once, or the link is closed; what was sent and had not arrived then is
// lost. Who a peer is and what frames say is decided above.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string_view>

#include "base/status.h"
#include "cluster/face/transport_options.h"
#include "cluster/transport/frame.h"
#include "cluster/transport/frame_links.h"
#include "cluster/transport/peer_identity.h"

namespace troupe {

// Called on the thread of the links, never two at once. They may call all of PeerLinks but its
// destructor, and should return within milliseconds: until then nothing else arrives, and after
// some seconds peers take this node for dead.
class LinkEvents {
 public:
  virtual ~LinkEvents() = default;

  virtual void OnOpened(LinkId link, const PeerIdentity& peer) = 0;
  // The bytes are valid during the call.
  virtual void OnFrame(LinkId link, std::span<const std::byte> frame) = 0;
  // After each OnOpened, at last. kCancelled: by Close or the destructor. kResourceExhausted: a
  // frame was larger than the other end takes, or there was no memory for it.
  virtual void OnClosed(LinkId link, const Status& why) = 0;
  // An attempt to dial brought no link. There will be another.
  virtual void OnUnreachable(LinkId link, const Status& why) = 0;
};

struct LinkCounters {
  std::uint64_t frames_sent = 0, bytes_sent = 0;  // given to the system
  std::uint64_t frames_received = 0, bytes_received = 0;
  std::uint64_t opened = 0;
  std::uint64_t lost = 0;         // closed by anything but Close and Break
  std::uint64_t unreachable = 0;  // attempts to dial that brought no link
  std::uint64_t refused = 0;      // links of peers beyond most_accepted
};

class PeerLinks final : public FrameLinks {
 public:
  // kUnavailable: the address is taken, or not this machine's. kInvalidArgument: an option or a TLS
  // file is not what it should be.
  static Result<std::unique_ptr<PeerLinks>> Listen(const TransportOptions& options);
  // Closes all links. Calls nothing of LinkEvents afterwards.
  ~PeerLinks() override;
  PeerLinks(const PeerLinks&) = delete;
  PeerLinks& operator=(const PeerLinks&) = delete;

  // From now on links are accepted and events told. Once, before everything below.
  void Start(LinkEvents& events);

  Result<LinkId> Dial(std::string_view address) override;
  Status Send(LinkId link, Frame frame) override;
  void Break(LinkId link, Frame last) override;
  void Reset(LinkId link) override;
  void Close(LinkId link) override;

  std::uint16_t port() const;  // that it listens at
  LinkCounters counters() const;
  // None where there is no such link (any more).
  LinkTraffic TrafficOf(LinkId link) const;

 private:
  class Impl;
  explicit PeerLinks(std::unique_ptr<Impl> impl);
  std::unique_ptr<Impl> impl_;
};

}  // namespace troupe
