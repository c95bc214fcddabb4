// FrameStreams over gRPC: a stream is one call of one method on a connection of its own, a frame
// one message as raw bytes. There is no protobuf in it and no generated code. One thread waits at
// one completion queue for all of them: a round trip takes a quarter of what gRPC's callbacks take.
#pragma once

#include <memory>

#include "base/status.h"
#include "cluster/face/transport_options.h"
#include "cluster/transport/frame_streams.h"

namespace troupe {

// Listens. kUnavailable: the address is taken, or not this machine's. kInvalidArgument: the TLS
// files are not what they should be.
Result<std::unique_ptr<FrameStreams>> ListenWithGrpc(const TransportOptions& options);

}  // namespace troupe
