#include "troupe/cluster_flags.h"

#include <unistd.h>

#include <algorithm>
#include <array>
#include <optional>
#include <set>
#include <utility>

#include "cluster/face/announced_host.h"
#include "cluster/face/own_address.h"
#include "cluster/face/peer_address.h"
#include "cluster/members/cluster_keys.h"
#include "cluster/wire/wire_text.h"
#include "placement/placer.h"
#include "troupe/percent.h"

namespace troupe {
namespace {

std::string HostName() {
  std::array<char, 256> name = {};
  if (gethostname(name.data(), name.size() - 1) != 0 || name[0] == '\0') return "node";
  return name.data();
}

// Others may know it by its name within a domain.
bool IsThisMachinesName(const std::string& host) {
  const std::string own = HostName();
  return host == own || host.starts_with(own + ".");
}

Result<PeerAddress> ListenAddress(const std::string& text, std::uint16_t usual_port) {
  Result<PeerAddress> address = ParsePeerAddress(WithUsualPort(text, usual_port));
  if (!address.ok()) {
    return InvalidArgument("--peer-listen: '{}', expected HOST or HOST:PORT", text);
  }
  return address;
}

std::vector<std::string> Placers() {
  const auto names = PlacerNames();
  return {names.begin(), names.end()};
}

}  // namespace

void ClusterFlags::AddTo(Options& options) {
  options.Heading("Cluster: nodes that compute experts for each other");
  options.Add("--cluster", cluster_, "The cluster's name; nodes of others are refused (troupe)")
      .Type("NAME");
  options
      .Add("--etcd", etcd_,
           "Where etcd is, which says who the nodes are and which of them plans who holds what")
      .Type("HOST:PORT,…");
  options
      .Add("--peers", peers_,
           "In its place, for few machines: addresses of all nodes, this one's too, in the same "
           "order and words on each (port 7070 unless given). The first one plans who holds what")
      .SeparatedBy(',')
      .Type("HOST[:PORT],…");
  options
      .Add("--peer-address", address_,
           "Where peers reach this node (that of --peers which is this machine's; by --etcd this "
           "machine's address, or the host that its certificate names, and port 7070)")
      .Type("HOST[:PORT]");
  options
      .Add("--peer-listen", listen_,
           "Where it listens for peers, if they reach it by another address: behind NAT, or in a "
           "container, as 0.0.0.0 (--peer-address; where this machine's own name leads only to "
           "itself, [::])")
      .Type("HOST[:PORT]");
  options.Add("--node", node_, "This node's name (the machine's)").Type("NAME");
  options.Add("--placer", placer_, "Method by which the node that leads plans (dancemoe)")
      .OneOf(Placers())
      .Type("NAME");
  options
      .Add("--copies", copies_,
           "On how many nodes each expert is to be, as far as memory allows, so that one that dies "
           "is missed less (1)")
      .Between(std::uint32_t{1}, std::uint32_t{64})
      .Type("N");
  options
      .Add("--plan-every-s", plan_every_seconds_,
           "How often it looks whether another plan pays (300): a move has to pay within about "
           "three "
           "plans. Nodes tell it what their users activate at least twice as often")
      .Between(std::uint32_t{2}, std::uint32_t{86'400})
      .Type("SECONDS");
  options
      .Add("--gather-s", gather_seconds_,
           "How long a plan waits for further nodes when some have come (5)")
      .Between(std::uint32_t{1}, std::uint32_t{3'600})
      .Type("SECONDS");
  options
      .Add("--forget-s", forget_seconds_,
           "How long a node may be away before a plan does without it (60)")
      .Between(std::uint32_t{1}, std::uint32_t{86'400})
      .Type("SECONDS");
  options
      .Add("--verify", verify_,
           "How many of peers' answers are computed again here, with what is on this disk, as 1%; "
           "a peer that does not have the same bytes is thrown out (0%)")
      .Type("PERCENT%");
  options
      .Add("--peer-answers", answers_,
           "How peers answer: f32: every bit, so that answers are exact; lossy, for slow links: "
           "bf16: half of the bytes; q8: less than a third. What was so rounded is counted, and "
           "requests with \"quality\": \"exact\" get every bit (f32)")
      .OneOf({"f32", "bf16", "q8"})
      .Excludes("--quality")
      .Type("FORM");
  options.Add("--peer-threads", threads_, "Threads that compute for peers (1)")
      .Between(std::uint32_t{1}, std::uint32_t{1024})
      .Type("N");
  options
      .Add("--peer-authority", peer_tls_.authority,
           "Only talk to nodes with a certificate that this authority has signed (PEM)")
      .Type("FILE")
      .Needs("--peer-certificate");
  options.Add("--peer-certificate", peer_tls_.certificate, "This node's certificate (PEM)")
      .Type("FILE")
      .Needs("--peer-key");
  options.Add("--peer-key", peer_tls_.key, "Its private key (PEM)")
      .Type("FILE")
      .Needs("--peer-authority");
  options.AddFlag("--peer-plain-text", plain_text_,
                  "Talk to peers on other machines without encryption, and to whoever says that it "
                  "is one");
  options
      .Add("--lease-s", lease_seconds_,
           "How long etcd takes a node that is silent for one that is there (10)")
      .Between(std::uint32_t{1}, std::uint32_t{86'400})
      .Type("SECONDS")
      .Needs("--etcd");
  options
      .AddFlag("--new-cluster", new_cluster_,
               "Let the cluster begin where etcd has others and none of this name; without it that "
               "is a mistyped name, which ends the node")
      .Needs("--etcd");
  options
      .AddFlag("--new-model", new_model_,
               "Let the cluster go over to this model though its last plan, which etcd keeps, is "
               "for another one; without it that is a mistake, which ends the node")
      .Needs("--etcd");
  options.Add("--etcd-authority", etcd_tls_.authority, "Who has signed etcd's certificate (PEM)")
      .Type("FILE")
      .Needs("--etcd");
  options
      .Add("--etcd-certificate", etcd_tls_.certificate,
           "Certificate by which etcd knows this node (PEM)")
      .Type("FILE")
      .Needs("--etcd-key");
  options.Add("--etcd-key", etcd_tls_.key, "Its private key (PEM)")
      .Type("FILE")
      .Needs("--etcd-certificate");
}

Status ClusterFlags::CheckUsage() const {
  const ClusterFlags none;
  if (any()) return Read().status();
  const std::pair<const char*, bool> given[] = {
      {"--cluster", cluster_ != none.cluster_},
      {"--peer-address", address_ != none.address_},
      {"--peer-listen", listen_ != none.listen_},
      {"--node", node_ != none.node_},
      {"--placer", placer_ != none.placer_},
      {"--plan-every-s", plan_every_seconds_ != none.plan_every_seconds_},
      {"--gather-s", gather_seconds_ != none.gather_seconds_},
      {"--forget-s", forget_seconds_ != none.forget_seconds_},
      {"--verify", verify_ != none.verify_},
      {"--copies", copies_ != none.copies_},
      {"--peer-answers", answers_ != none.answers_},
      {"--peer-threads", threads_ != none.threads_},
      {"--peer-authority", peer_tls_.any()},
      {"--peer-plain-text", plain_text_ != none.plain_text_},
      {"--etcd-certificate", etcd_tls_.enabled()}};
  for (const auto& [option, is_given] : given) {
    if (is_given) return InvalidArgument("{} needs --etcd or --peers", option);
  }
  return OkStatus();
}

Status ClusterFlags::CheckList(const ClusterOptions& options) const {
  std::set<std::string> seen;
  for (const std::string& peer : options.node.addresses) {
    TROUPE_RETURN_IF_ERROR(ParsePeerAddress(peer).status());
    if (!seen.insert(peer).second) return InvalidArgument("--peers: '{}' twice", peer);
  }
  if (!options.address.empty() && !seen.contains(options.address)) {
    return InvalidArgument("--peer-address: '{}' is none of --peers", options.address);
  }
  return OkStatus();
}

RowForm ClusterFlags::peer_answers() const {
  if (answers_ == "q8") return RowForm::kInt8;
  return answers_ == "bf16" ? RowForm::kBf16 : RowForm::kFloat;
}

// Of "1%", or "1".
Result<double> ClusterFlags::Verify() const {
  const std::optional<double> percent = PercentOf(verify_.ends_with('%') ? verify_ : verify_ + "%");
  if (!percent || !(*percent >= 0 && *percent <= 100)) {
    return InvalidArgument("--verify: '{}', expected 0% to 100%", verify_);
  }
  return *percent / 100;
}

Result<ClusterOptions> ClusterFlags::Read() const {
  ClusterOptions options{
      .cluster = cluster_,
      .name = node_.empty() ? HostName() : node_,
      .address = address_.empty() ? std::string() : WithUsualPort(address_),
      .listen = listen_,
      .transport = {},
      .node = {.addresses = {}, .new_model = new_model_, .planner = {.placer = placer_}},
      .etcd = {},
      .new_cluster = new_cluster_,
      .lease = Nanos{1'000'000'000} * lease_seconds_,
      .peer_threads = threads_,
      .calls = {},
      .verify = 0,
      .say = nullptr,
      .fail = nullptr};
  TROUPE_ASSIGN_OR_RETURN(options.verify, Verify());
  for (const std::string& peer : peers_) options.node.addresses.push_back(WithUsualPort(peer));
  constexpr Nanos kSecond = 1'000'000'000;
  options.node.planner.copies = copies_;
  options.node.planner.plan_every = kSecond * plan_every_seconds_;
  options.node.planner.gather = kSecond * gather_seconds_;
  options.node.planner.forget_after = kSecond * forget_seconds_;
  options.node.report_every =
      std::min(options.node.report_every, options.node.planner.plan_every / 2);
  options.transport.tls = peer_tls_;
  options.transport.allow_plain_text = plain_text_;
  if (etcd_.empty()) {
    TROUPE_RETURN_IF_ERROR(CheckPeerName("--cluster", options.cluster));
    TROUPE_RETURN_IF_ERROR(CheckPeerName("--node", options.name));
    TROUPE_RETURN_IF_ERROR(CheckList(options));
  } else {
    if (!peers_.empty()) return InvalidArgument("--etcd and --peers exclude each other");
    TROUPE_RETURN_IF_ERROR(CheckClusterName("--cluster", options.cluster));
    TROUPE_RETURN_IF_ERROR(CheckClusterName("--node", options.name));
    options.etcd = EtcdOptions{.endpoints = {}, .tls = etcd_tls_};
    TROUPE_ASSIGN_OR_RETURN(options.etcd->endpoints, ParseEndpoints(etcd_));
  }
  if (!listen_.empty()) TROUPE_RETURN_IF_ERROR(ListenAddress(listen_, kUsualPeerPort).status());
  if (!options.address.empty()) TROUPE_RETURN_IF_ERROR(ListenAt(options.address, options));
  return options;
}

Status ListenAt(const std::string& address, ClusterOptions& options) {
  TROUPE_ASSIGN_OR_RETURN(PeerAddress own, ParsePeerAddress(address));
  if (own.IsEvery()) {
    return InvalidArgument(
        "--peer-address: '{}' is no address that peers can dial; --peer-listen "
        "says where to listen",
        address);
  }
  options.address = address;
  if (!options.listen.empty()) {
    TROUPE_ASSIGN_OR_RETURN(own, ListenAddress(options.listen, own.port));
  }
  options.transport.host = own.host;
  options.transport.port = own.port;
  return CheckTransportOptions(options.transport);
}

Status ListenAsOneOfTheList(ClusterOptions& options) {
  std::vector<std::string> own;
  for (const std::string& peer : options.node.addresses) {
    TROUPE_ASSIGN_OR_RETURN(const PeerAddress address, ParsePeerAddress(peer));
    const Result<bool> is_own = IsOwnHost(address);
    if (is_own.ok() && *is_own) own.push_back(peer);
  }
  if (own.size() == 1) return ListenAt(own.front(), options);
  return InvalidArgument("--peers: {} of them {} this machine's; --peer-address says which one",
                         own.empty() ? "none" : "several", own.empty() ? "is" : "are");
}

Status ListenTowardsEtcd(ClusterOptions& options) {
  Status problem;
  for (const std::string& endpoint : options.etcd->endpoints) {
    TROUPE_ASSIGN_OR_RETURN(const PeerAddress etcd, ParsePeerAddress(endpoint));
    const Result<std::string> host = OwnHostTowards(etcd);
    if (!host.ok()) {
      problem = host.status();
      continue;
    }
    PeerAddress own{.host = *host, .port = kUsualPeerPort};
    if (const std::string& certificate = options.transport.tls.certificate; !certificate.empty()) {
      TROUPE_ASSIGN_OR_RETURN(own.host, HostToAnnounce(*host, certificate));
    }
    if (!options.listen.empty()) {
      TROUPE_ASSIGN_OR_RETURN(const PeerAddress listen, ListenAddress(options.listen, own.port));
      own.port = listen.port;
    }
    return ListenAt(own.ToString(), options);
  }
  return std::move(problem).WithContext("--peer-address is not given, and cannot be found");
}

Status ListenForOtherMachines(ClusterOptions& options) {
  const PeerAddress own{.host = options.transport.host};
  // By another name that leads here alone its user means this machine alone.
  if (!options.listen.empty() || own.IsLoopback() || !IsThisMachinesName(own.host)) {
    return OkStatus();
  }
  const Result<bool> is_loopback = IsLoopbackHere(own);
  if (is_loopback.ok() && *is_loopback) options.listen = options.transport.host = "::";
  return CheckTransportOptions(options.transport);
}

}  // namespace troupe
