// gRPC's values as ours, and ours as gRPC's. Its types are only named here.
#pragma once

#include <memory>
#include <string>

#include "base/status.h"
#include "cluster/transport/frame.h"
#include "cluster/transport/peer_identity.h"

namespace grpc {
class AuthContext;
class Slice;
class Status;
}  // namespace grpc

namespace troupe {

// The frame's own memory, which gRPC frees when it is done with it.
grpc::Slice SliceOf(Frame frame);

// Why a call has ended; always an error. kPermissionDenied: the certificates are to blame.
Status StatusOf(const grpc::Status& status);

// Who is at that address, by what the other end has shown.
PeerIdentity IdentityOf(std::string address, const std::shared_ptr<const grpc::AuthContext>& shown);

}  // namespace troupe
