#include "cluster/transport/grpc_setup.h"

#include <grpc/grpc_security_constants.h>
#include <grpc/impl/codegen/grpc_types.h>
#include <grpcpp/create_channel.h>
#include <grpcpp/generic/async_generic_service.h>
#include <grpcpp/resource_quota.h>
#include <grpcpp/security/credentials.h>
#include <grpcpp/security/server_credentials.h>
#include <grpcpp/server.h>
#include <grpcpp/server_builder.h>

#include <utility>
#include <vector>

#include "cluster/grpc/grpc_use.h"
#include "cluster/transport/listen_error.h"
#include "io/text_file.h"

namespace troupe {
namespace {

using GrpcArguments = std::vector<std::pair<const char*, int>>;

int Millis(std::chrono::milliseconds time) { return static_cast<int>(time.count()); }

GrpcArguments CommonArguments(const TransportOptions& options) {
  return {{GRPC_ARG_KEEPALIVE_TIME_MS, Millis(options.ping_every)},
          {GRPC_ARG_KEEPALIVE_TIMEOUT_MS, Millis(options.ping_answer)},
          {GRPC_ARG_KEEPALIVE_PERMIT_WITHOUT_CALLS, 1},
          {GRPC_ARG_HTTP2_MAX_PINGS_WITHOUT_DATA, 0},
          // Large enough that what a reader has to say of its window goes with what it sends, and
          // that a frame comes in few pieces (peer_links_bench).
          {GRPC_ARG_HTTP2_STREAM_LOOKAHEAD_BYTES, 4 << 20},
          {GRPC_ARG_HTTP2_BDP_PROBE, 0},
          {GRPC_ARG_HTTP2_MAX_FRAME_SIZE, 1 << 20},
          {GRPC_ARG_TCP_READ_CHUNK_SIZE, 64 << 10}};
}

}  // namespace

Result<GrpcSetup> GrpcSetup::For(const TransportOptions& options) {
  QuietGrpc();
  GrpcSetup setup;
  setup.options_ = options;
  setup.quota_ = std::make_shared<grpc::ResourceQuota>();
  setup.quota_->Resize(options.most_buffered);
  if (!options.tls.any()) {
    setup.dial_ = grpc::InsecureChannelCredentials();
    setup.listen_ = grpc::InsecureServerCredentials();
    return setup;
  }
  constexpr Bytes kMost(1 << 20);
  TROUPE_ASSIGN_OR_RETURN(const std::string authority, ReadWholeText(options.tls.authority, kMost));
  TROUPE_ASSIGN_OR_RETURN(const std::string certificate,
                          ReadWholeText(options.tls.certificate, kMost));
  TROUPE_ASSIGN_OR_RETURN(const std::string key, ReadWholeText(options.tls.key, kMost));
  grpc::SslCredentialsOptions dial;
  dial.pem_root_certs = authority;
  dial.pem_private_key = key;
  dial.pem_cert_chain = certificate;
  setup.dial_ = grpc::SslCredentials(dial);
  grpc::SslServerCredentialsOptions listen(
      GRPC_SSL_REQUEST_AND_REQUIRE_CLIENT_CERTIFICATE_AND_VERIFY);
  listen.pem_root_certs = authority;
  listen.pem_key_cert_pairs.push_back({key, certificate});
  setup.listen_ = grpc::SslServerCredentials(listen);
  return setup;
}

Result<std::uint16_t> GrpcSetup::Listen(grpc::AsyncGenericService& service,
                                        std::unique_ptr<grpc::ServerCompletionQueue>& queue,
                                        std::unique_ptr<grpc::Server>& server) const {
  GrpcArguments arguments = CommonArguments(options_);
  arguments.insert(arguments.end(),
                   {{GRPC_ARG_HTTP2_MAX_PING_STRIKES, 0},  // peers ask as often as this node does
                    {GRPC_ARG_ALLOW_REUSEPORT, 0},         // a port that is taken is an error
                    {GRPC_ARG_MAX_CONCURRENT_STREAMS, 1},
                    {GRPC_ARG_SERVER_HANDSHAKE_TIMEOUT_MS, Millis(options_.connect_time)},
                    {GRPC_ARG_MAX_CONNECTION_IDLE_MS, Millis(options_.connect_time)}});
  grpc::ServerBuilder builder;
  for (const auto& [name, value] : arguments) builder.AddChannelArgument(name, value);
  builder.SetMaxReceiveMessageSize(static_cast<int>(options_.most_frame));
  builder.SetResourceQuota(*quota_);
  // What is compressed may be larger than most_frame once it is not.
  builder.SetCompressionAlgorithmSupportStatus(GRPC_COMPRESS_DEFLATE, false);
  builder.SetCompressionAlgorithmSupportStatus(GRPC_COMPRESS_GZIP, false);
  builder.RegisterAsyncGenericService(&service);
  const PeerAddress address{.host = options_.host, .port = options_.port};
  int port = 0;
  builder.AddListeningPort(address.ToString(), listen_, &port);
  queue = builder.AddCompletionQueue();
  server = builder.BuildAndStart();
  if (!server || port == 0) return WhyNotListening(options_);
  return static_cast<std::uint16_t>(port);
}

std::shared_ptr<grpc::Channel> GrpcSetup::ChannelTo(const std::string& address) const {
  GrpcArguments arguments = CommonArguments(options_);
  arguments.insert(arguments.end(),
                   {{GRPC_ARG_MAX_RECEIVE_MESSAGE_LENGTH, static_cast<int>(options_.most_frame)},
                    // Never tried again, but its pause after a failure keeps gRPC's threads alive.
                    {GRPC_ARG_INITIAL_RECONNECT_BACKOFF_MS, 100},
                    {GRPC_ARG_MIN_RECONNECT_BACKOFF_MS, Millis(options_.connect_time)},
                    {GRPC_ARG_USE_LOCAL_SUBCHANNEL_POOL, 1},
                    {GRPC_ARG_ENABLE_RETRIES, 0},
                    {GRPC_COMPRESSION_CHANNEL_ENABLED_ALGORITHMS_BITSET, 1 << GRPC_COMPRESS_NONE},
                    {GRPC_ARG_ENABLE_HTTP_PROXY, 0},  // peers are not where a proxy leads
                    {GRPC_ARG_SERVICE_CONFIG_DISABLE_RESOLUTION, 1}});
  grpc::ChannelArguments all;
  for (const auto& [name, value] : arguments) all.SetInt(name, value);
  all.SetResourceQuota(*quota_);
  return grpc::CreateCustomChannel("dns:///" + address, dial_, all);
}

}  // namespace troupe

// Debian's gRPC is not instrumented, so sanitizers do not see how it orders its threads, and some
// of what it leaks is its own: the connections that are being made when a server stops.
#if defined(__has_feature)
#if __has_feature(address_sanitizer)
extern "C" const char* __lsan_default_suppressions() {
  return "leak:libgrpc.so\nleak:libgpr.so\nleak:libabsl_\n";
}
#elif __has_feature(thread_sanitizer)
extern "C" const char* __tsan_default_suppressions() {
  return "race:^grpc::\nrace:libgrpc\nrace:libgpr.so\nrace:libabsl_\n"
         "race:libssl\nrace:libcrypto\n";
}
#endif
#endif
