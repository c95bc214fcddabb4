// The options by which `troupe serve` becomes a node of a cluster.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/status.h"
#include "cluster/face/node_options.h"
#include "expert/row_form.h"
#include "troupe/option_table.h"

namespace troupe {

class ClusterFlags {
 public:
  void AddTo(Options& options);
  Status CheckUsage() const;

  bool any() const { return !peers_.empty() || !etcd_.empty(); }
  // In which peers may answer.
  RowForm peer_answers() const;
  // Without an address if none is given, and so it does not say where to listen.
  Result<ClusterOptions> Read() const;

  bool operator==(const ClusterFlags&) const = default;

 private:
  Status CheckList(const ClusterOptions& options) const;
  Result<double> Verify() const;

  std::string cluster_ = "troupe", node_, address_, etcd_, placer_ = "dancemoe", verify_ = "0%",
              answers_ = "f32", listen_;
  std::vector<std::string> peers_;
  PeerTlsFiles peer_tls_;
  EtcdTls etcd_tls_;
  bool plain_text_ = false;
  bool new_cluster_ = false, new_model_ = false;
  std::uint32_t threads_ = 1, lease_seconds_ = 10, plan_every_seconds_ = 300, copies_ = 1;
  std::uint32_t gather_seconds_ = 5, forget_seconds_ = 60;
};

// Peers reach the node there; it listens there too, unless the options say where.
Status ListenAt(const std::string& address, ClusterOptions& options);
// The same, by that of the listed addresses which is this machine's.
Status ListenAsOneOfTheList(ClusterOptions& options);
// The same, by the address from which this machine reaches etcd, or by a host of its certificate.
Status ListenTowardsEtcd(ClusterOptions& options);
// Peers come in at whatever address they know this node's name by, though here it is the loopback.
Status ListenForOtherMachines(ClusterOptions& options);

}  // namespace troupe
