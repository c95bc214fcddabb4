#include "cluster/etcd/etcd_channel.h"

#include <grpcpp/create_channel.h>
#include <grpcpp/support/channel_arguments.h>

#include <fstream>
#include <iterator>

namespace troupe {
namespace {

constexpr const char* kTrustedByDebian = "/etc/ssl/certs/ca-certificates.crt";

Result<std::string> ReadPem(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  std::string text{std::istreambuf_iterator<char>(file), {}};
  if (!file) return Error(Code::kNotFound, "{}: cannot be read", path);
  if (text.find("-----BEGIN ") == std::string::npos) {
    return InvalidArgument("{}: no certificate or key in PEM", path);
  }
  return text;
}

}  // namespace

Result<std::shared_ptr<grpc::ChannelCredentials>> CredentialsFor(const EtcdTls& tls) {
  if (!tls.enabled()) return grpc::InsecureChannelCredentials();
  if (tls.certificate.empty() != tls.key.empty()) {
    return InvalidArgument("etcd: a certificate and its key go together");
  }
  grpc::SslCredentialsOptions options;
  TROUPE_ASSIGN_OR_RETURN(options.pem_root_certs,
                          ReadPem(tls.authority.empty() ? kTrustedByDebian : tls.authority));
  if (!tls.certificate.empty()) {
    TROUPE_ASSIGN_OR_RETURN(options.pem_cert_chain, ReadPem(tls.certificate));
    TROUPE_ASSIGN_OR_RETURN(options.pem_private_key, ReadPem(tls.key));
  }
  return grpc::SslCredentials(options);
}

std::shared_ptr<grpc::Channel> ConnectTo(
    const std::string& endpoint, const std::shared_ptr<grpc::ChannelCredentials>& credentials) {
  grpc::ChannelArguments arguments;
  // gRPC would wait up to two minutes between two attempts: etcd's return is to be seen sooner.
  arguments.SetInt(GRPC_ARG_INITIAL_RECONNECT_BACKOFF_MS, 200);
  arguments.SetInt(GRPC_ARG_MIN_RECONNECT_BACKOFF_MS, 2000);  // how long an attempt may take
  arguments.SetInt(GRPC_ARG_MAX_RECONNECT_BACKOFF_MS, 2000);
  // A machine that is gone says nothing: pings find that out, or a watch would wait for ever. etcd
  // allows one every 5 s.
  arguments.SetInt(GRPC_ARG_KEEPALIVE_TIME_MS, 10000);
  arguments.SetInt(GRPC_ARG_KEEPALIVE_TIMEOUT_MS, 3000);
  arguments.SetInt(GRPC_ARG_HTTP2_MAX_PINGS_WITHOUT_DATA, 0);
  arguments.SetInt(GRPC_ARG_ENABLE_HTTP_PROXY, 0);
  arguments.SetInt(GRPC_ARG_SERVICE_CONFIG_DISABLE_RESOLUTION, 1);
  // A store that is opened anew must not wait for the pause of an earlier one's failed attempt.
  arguments.SetInt(GRPC_ARG_USE_LOCAL_SUBCHANNEL_POOL, 1);
  arguments.SetMaxReceiveMessageSize(16 << 20);
  return grpc::CreateCustomChannel(endpoint, credentials, arguments);
}

}  // namespace troupe
