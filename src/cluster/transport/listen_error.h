// Why a node cannot listen. gRPC tells that its log alone.
#pragma once

#include "base/status.h"
#include "cluster/face/transport_options.h"

namespace troupe {

// After gRPC has failed to listen with these options; always an error. kUnavailable: the address is
// taken, or not this machine's. kInvalidArgument: the TLS files are not what they should be.
Status WhyNotListening(const TransportOptions& options);

}  // namespace troupe
