// Any text as the value of a key that a cluster keeps in etcd, where others may write too: a record
// that reads the same after it is written again, or an error in one line.
#include <cstddef>
#include <cstdint>
#include <string_view>

#include "base/check.h"
#include "cluster/members/cluster_keys.h"

namespace {

template <typename T>
void ExpectOneLine(const troupe::Result<T>& record) {
  TROUPE_CHECK(record.ok() || record.status().message().find('\n') == std::string_view::npos);
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view value(reinterpret_cast<const char*>(data), size);
  const auto node = troupe::ParseNode("a", value);
  ExpectOneLine(node);
  if (node.ok()) TROUPE_CHECK(troupe::ParseNode("a", troupe::ToValue(*node)).value() == *node);
  const auto leader = troupe::ParseLeader(value);
  ExpectOneLine(leader);
  if (leader.ok()) {
    TROUPE_CHECK(troupe::ParseLeader(troupe::ToValue(*leader)).value() == *leader);
  }
  const auto plan = troupe::ParsePlan(value);
  ExpectOneLine(plan);
  if (plan.ok()) {
    TROUPE_CHECK(troupe::ParsePlan(troupe::ToValue(*plan)).value().stamp == plan->stamp);
  }
  return 0;
}
