#include "cluster/members/member_state.h"

namespace troupe {
namespace {

// A store counts leases in seconds, and a day is longer than any outage that one waits for.
constexpr Nanos kShortestTtl = 1'000'000'000;
constexpr Nanos kLongestTtlOfLease = 86'400 * kShortestTtl;

}  // namespace

Status Validate(const MembershipOptions& options) {
  TROUPE_RETURN_IF_ERROR(CheckClusterName("cluster", options.cluster));
  TROUPE_RETURN_IF_ERROR(CheckClusterName("node", options.node));
  if (options.address.empty()) return InvalidArgument("node '{}': no address", options.node);
  if (options.start.empty()) return InvalidArgument("node '{}': no start id", options.node);
  if (options.ttl < kShortestTtl || options.ttl > kLongestTtlOfLease) {
    return InvalidArgument("node '{}': a lease of {} s, 1 to 86400 are allowed", options.node,
                           static_cast<double>(options.ttl) * 1e-9);
  }
  if (options.retry <= 0)
    return InvalidArgument("node '{}': retries without a pause", options.node);
  return OkStatus();
}

std::string_view ToString(MemberState state) {
  switch (state) {
    case MemberState::kJoining:
      return "joining";
    case MemberState::kMember:
      return "member";
    case MemberState::kNameTaken:
      return "name taken";
    case MemberState::kOtherModel:
      return "other model";
    case MemberState::kUnknown:
      return "unknown cluster";
    case MemberState::kDistrusted:
      return "distrusted";
    case MemberState::kWithoutStore:
      return "without store";
    case MemberState::kLeft:
      return "left";
  }
  return "unknown";
}

}  // namespace troupe
