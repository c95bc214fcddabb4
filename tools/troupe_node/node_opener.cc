// Of troupe-node.
#include "troupe/node_opener.h"
#include "cluster/cluster_node.h"

namespace troupe {

OpenNode NodeOpener() {
  return [](Engine& engine, ClusterOptions options) -> Result<std::unique_ptr<RunningNode>> {
    TROUPE_ASSIGN_OR_RETURN(std::unique_ptr<ClusterNode> node,
                            ClusterNode::Open(engine, std::move(options)));
    return std::unique_ptr<RunningNode>(std::move(node));
  };
}

}  // namespace troupe
