// Links to peers as a node uses them: PeerLinks (peer_links.h) is the real one, tests have a
// network on a virtual clock.
#pragma once

#include <cstdint>
#include <string_view>

#include "base/status.h"
#include "cluster/transport/frame.h"

namespace troupe {

using LinkId = std::uint64_t;  // never 0, never used again

// Bytes of frames over one link, since it was dialled or accepted for the first time.
struct LinkTraffic {
  std::uint64_t sent = 0, received = 0;

  bool operator==(const LinkTraffic&) const = default;
};

// Any thread; nothing waits.
class FrameLinks {
 public:
  virtual ~FrameLinks() = default;

  // A peer that cannot be reached is tried again, with growing pauses, until Close.
  // kInvalidArgument: not host:port, or plain text would leave this machine.
  virtual Result<LinkId> Dial(std::string_view address) = 0;

  // kUnavailable: the link is not open. kResourceExhausted: too much waits to be sent on it.
  // kInvalidArgument: the frame is larger than a frame may be. The frame is not sent then.
  virtual Status Send(LinkId link, Frame frame) = 0;

  // Sends this as the last frame, if it is one, and ends the connection; of its events only
  // OnClosed follows. A link that was dialled is dialled again, after refused_pause. Does nothing
  // if it is not open.
  virtual void Break(LinkId link, Frame last) = 0;

  // Ends the connection as if it were lost. Does nothing if it is not open.
  virtual void Reset(LinkId link) = 0;

  // Ends the connection. Frames that wait to be sent are dropped. Of its events only OnClosed may
  // follow, and one that is under way. Does nothing if there is no such link.
  virtual void Close(LinkId link) = 0;
};

}  // namespace troupe
