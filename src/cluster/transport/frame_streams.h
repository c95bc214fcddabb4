// Streams of frames to and from peers, as peer_links.cc uses them: one connection each, from its
// opening to its end, on one thread. Dialling again, queues and limits are there and not here.
// What carries them is grpc_streams.cc, which alone knows gRPC's C++ interface.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>

#include "base/clock.h"
#include "base/status.h"
#include "cluster/transport/frame.h"
#include "cluster/transport/peer_identity.h"

namespace troupe {

class FrameStream {
 public:
  virtual ~FrameStream() = default;

  // Any thread, never waits. The next frame may follow after OnWritten.
  virtual void Write(Frame frame) = 0;

  // Any thread: soon OnEnded comes, with this reason if no other was first.
  virtual void End(Status why) = 0;
};

// Called on the thread of the streams.
class StreamEvents {
 public:
  virtual ~StreamEvents() = default;

  virtual void OnOpened(const PeerIdentity& peer) = 0;  // from now on frames may be written
  virtual void OnFrame(std::span<const std::byte> frame) = 0;
  virtual void OnWritten() = 0;
  virtual void OnEnded(const Status& why) = 0;  // nothing comes after it
};

class FrameStreams {
 public:
  // Who is to hear a stream that a peer wants to open; null: there are too many already.
  using Accept =
      std::function<std::shared_ptr<StreamEvents>(const std::shared_ptr<FrameStream>& stream)>;

  // Ends every stream; when it returns, each has had its OnEnded, and tasks that had not run yet
  // never will.
  virtual ~FrameStreams() = default;

  // Starts the thread; from now on streams of peers are accepted. Once.
  virtual void Start(Accept accept) = 0;

  // Any thread: runs the task soon on the thread of the streams.
  virtual void Post(std::function<void()> task) = 0;

  // On the thread of the streams: a task for later, and a stream to that address.
  virtual void CallAt(Nanos when, std::function<void()> task) = 0;
  virtual std::shared_ptr<FrameStream> Connect(const std::string& address,
                                               std::shared_ptr<StreamEvents> events) = 0;

  virtual std::uint16_t port() const = 0;  // that it listens at
};

}  // namespace troupe
