// The options by which `troupe serve` becomes a node of a cluster.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/status.h"
#include "cluster/cluster_node.h"
#include "troupe/option_table.h"

namespace troupe {

class ClusterFlags {
 public:
  void AddTo(Options& options);
  Status CheckUsage() const;

  bool any() const { return !peers_.empty(); }
  Result<ClusterOptions> Read() const;

  bool operator==(const ClusterFlags&) const = default;

 private:
  std::string cluster_ = "troupe", node_, address_, placer_ = "dancemoe";
  std::vector<std::string> peers_;
  std::string authority_, certificate_, key_;
  bool plain_text_ = false;
  std::uint32_t threads_ = 1;
};

}  // namespace troupe
