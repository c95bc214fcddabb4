// Which clusters a store has keys of, and what is said of one that it has none of: a name that was
// mistyped must not begin a cluster of one node beside the one that was meant. Pure.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "cluster/members/kv_store.h"

namespace troupe {

// Each once, in the order of their names.
std::vector<std::string> ClustersOf(const std::vector<KvEntry>& entries);

// "etcd has no cluster 'lap', but 'lab' and 'prod': did you mean 'lab'? …", in one line. `others`
// are not empty.
std::string SayUnknownCluster(std::string_view cluster, const std::vector<std::string>& others);
// Of one that begins now.
std::string SayNewCluster(std::string_view cluster, const std::vector<std::string>& others);

}  // namespace troupe
