// gRPC as links need it: servers and channels with their credentials and settings. Its types are
// only named here.
#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include "base/status.h"
#include "cluster/face/transport_options.h"

namespace grpc {
class AsyncGenericService;
class Channel;
class ChannelCredentials;
class ResourceQuota;
class Server;
class ServerCompletionQueue;
class ServerCredentials;
}  // namespace grpc

namespace troupe {

class GrpcSetup {
 public:
  // Reads the TLS files, if there are any. What is in them is checked by gRPC, at listening.
  static Result<GrpcSetup> For(const TransportOptions& options);

  // Sets queue and server, and returns the port. Errors are those of WhyNotListening.
  Result<std::uint16_t> Listen(grpc::AsyncGenericService& service,
                               std::unique_ptr<grpc::ServerCompletionQueue>& queue,
                               std::unique_ptr<grpc::Server>& server) const;

  // A channel that remembers nothing of an earlier one to the same address.
  std::shared_ptr<grpc::Channel> ChannelTo(const std::string& address) const;

 private:
  TransportOptions options_;
  std::shared_ptr<grpc::ChannelCredentials> dial_;
  std::shared_ptr<grpc::ServerCredentials> listen_;
  std::shared_ptr<grpc::ResourceQuota> quota_;
};

}  // namespace troupe
