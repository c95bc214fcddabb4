#include "troupe/cluster_flags.h"

#include <unistd.h>

#include <algorithm>
#include <array>

#include "cluster/wire/wire_text.h"
#include "placement/placer.h"

namespace troupe {
namespace {

std::string HostName() {
  std::array<char, 256> name = {};
  if (gethostname(name.data(), name.size() - 1) != 0 || name[0] == '\0') return "node";
  return name.data();
}

std::vector<std::string> Placers() {
  const auto names = PlacerNames();
  return {names.begin(), names.end()};
}

}  // namespace

void ClusterFlags::AddTo(Options& options) {
  options.Heading("Cluster");
  options
      .Add("--peers", peers_,
           "Addresses of all nodes of a cluster, this one's too, in the same order on each: nodes "
           "compute experts for each other, and the first one plans who holds what")
      .SeparatedBy(',')
      .Type("HOST:PORT,…");
  options.Add("--peer-address", address_, "Which of them is this node's").Type("HOST:PORT");
  options.Add("--cluster", cluster_, "The cluster's name; nodes of others are refused (troupe)")
      .Type("NAME")
      .Needs("--peers");
  options.Add("--node", node_, "This node's name (the machine's)").Type("NAME").Needs("--peers");
  options.Add("--placer", placer_, "Method by which the first node plans (dancemoe)")
      .OneOf(Placers())
      .Type("NAME")
      .Needs("--peers");
  options.Add("--peer-threads", threads_, "Threads that compute for peers (1)")
      .Between(std::uint32_t{1}, std::uint32_t{1024})
      .Type("N")
      .Needs("--peers");
  options
      .Add("--peer-authority", authority_,
           "Only talk to nodes with a certificate that this authority has signed (PEM)")
      .Type("FILE")
      .Needs("--peer-certificate");
  options.Add("--peer-certificate", certificate_, "This node's certificate (PEM)")
      .Type("FILE")
      .Needs("--peer-key");
  options.Add("--peer-key", key_, "Its private key (PEM)").Type("FILE").Needs("--peer-authority");
  options
      .AddFlag("--peer-plain-text", plain_text_,
               "Talk to peers on other machines without encryption, and to whoever says that it is "
               "one")
      .Needs("--peers");
}

Status ClusterFlags::CheckUsage() const {
  if (!any()) {
    if (address_.empty()) return OkStatus();
    return InvalidArgument("--peer-address needs --peers");
  }
  if (address_.empty()) {
    return InvalidArgument("--peers needs --peer-address: which of them is this node");
  }
  return Read().status();
}

Result<ClusterOptions> ClusterFlags::Read() const {
  ClusterOptions options{.cluster = cluster_,
                         .name = node_.empty() ? HostName() : node_,
                         .address = address_,
                         .transport = {},
                         .node = {.addresses = peers_, .placer = placer_},
                         .peer_threads = threads_,
                         .calls = {},
                         .say = nullptr};
  TROUPE_RETURN_IF_ERROR(CheckPeerName("--cluster", options.cluster));
  TROUPE_RETURN_IF_ERROR(CheckPeerName("--node", options.name));
  for (std::size_t i = 0; i < peers_.size(); ++i) {
    TROUPE_RETURN_IF_ERROR(ParsePeerAddress(peers_[i]).status());
    if (std::find(peers_.begin(), peers_.begin() + static_cast<std::ptrdiff_t>(i), peers_[i]) !=
        peers_.begin() + static_cast<std::ptrdiff_t>(i)) {
      return InvalidArgument("--peers: '{}' twice", peers_[i]);
    }
  }
  if (std::ranges::find(peers_, address_) == peers_.end()) {
    return InvalidArgument("--peer-address: '{}' is none of --peers", address_);
  }
  TROUPE_ASSIGN_OR_RETURN(const PeerAddress own, ParsePeerAddress(address_));
  options.transport.host = own.host;
  options.transport.port = own.port;
  options.transport.tls = {.authority = authority_, .certificate = certificate_, .key = key_};
  options.transport.allow_plain_text = plain_text_;
  TROUPE_RETURN_IF_ERROR(CheckTransportOptions(options.transport));
  return options;
}

}  // namespace troupe
