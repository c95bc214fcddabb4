// gRPC's values as ours, and ours as gRPC's. Its types are only named here.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "base/status.h"
#include "cluster/transport/frame.h"

namespace grpc {
class AuthContext;
class Slice;
class Status;
}  // namespace grpc

namespace troupe {

// The frame's own memory, which gRPC frees when it is done with it.
grpc::Slice SliceOf(Frame frame);

// Why a call has ended; always an error.
Status StatusOf(const grpc::Status& status);

// The names in the certificate that the other end has shown; none without TLS.
std::vector<std::string> NamesIn(const std::shared_ptr<const grpc::AuthContext>& shown);

}  // namespace troupe
