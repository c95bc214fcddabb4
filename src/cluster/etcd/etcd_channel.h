// A connection to one of etcd's machines, made when it is first used and again whenever it breaks.
// For this folder's sources: it includes gRPC.
#pragma once

#include <grpcpp/channel.h>
#include <grpcpp/security/credentials.h>

#include <memory>
#include <string>

#include "base/status.h"
#include "cluster/face/etcd_options.h"

namespace troupe {

Result<std::shared_ptr<grpc::ChannelCredentials>> CredentialsFor(const EtcdTls& tls);
std::shared_ptr<grpc::Channel> ConnectTo(
    const std::string& endpoint, const std::shared_ptr<grpc::ChannelCredentials>& credentials);

}  // namespace troupe
