#include "expert/eviction_policy.h"

#include "expert/lfu.h"
#include "expert/lru.h"

namespace troupe {

std::vector<std::string> EvictionPolicyNames() { return {"lru", "lfu"}; }

Result<std::unique_ptr<EvictionPolicy>> MakeEvictionPolicy(std::string_view name, ExpertGrid grid) {
  if (name == "lru") return std::unique_ptr<EvictionPolicy>(std::make_unique<Lru>(grid));
  if (name == "lfu") return std::unique_ptr<EvictionPolicy>(std::make_unique<Lfu>(grid));
  return InvalidArgument("'{}' is no cache policy, expected lru or lfu", name);
}

}  // namespace troupe
