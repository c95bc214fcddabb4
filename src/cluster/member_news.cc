#include "cluster/member_news.h"

#include <algorithm>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "base/check.h"
#include "base/json.h"

namespace troupe {
namespace {

void TellState(const Membership& membership, NodeCore& core) {
  switch (membership.state()) {
    case MemberState::kMember:
      return core.OnListed();
    case MemberState::kUnknown:
    case MemberState::kNameTaken:
    case MemberState::kOtherModel:
    case MemberState::kDistrusted:
      return core.OnKeptOut(membership.problem());
    case MemberState::kJoining:
    case MemberState::kWithoutStore:
    case MemberState::kLeft:
      return;
  }
}

}  // namespace

MemberNews TellNews(Membership& membership, NodeCore& core, Nanos now) {
  MemberNews news = membership.TakeNews();
  if (news.state) TellState(membership, core);
  if (news.nodes) {
    std::vector<std::string> addresses;
    for (const NodeRecord& node : membership.nodes()) addresses.push_back(node.address);
    core.OnMembers(addresses);
  }
  if (news.leader) {
    std::optional<NodeLeader> leader;
    if (const auto& now_leads = membership.leader()) {
      const auto record = std::ranges::find(membership.nodes(), now_leads->node, &NodeRecord::name);
      leader = NodeLeader{
          .node = now_leads->node,
          .address = record == membership.nodes().end() ? std::string() : record->address,
          .self = now_leads->self};
    }
    core.OnLeader(leader, now);
  }
  if (news.plan) core.OnPlan(membership.plan()->stamp.epoch, membership.plan()->plan.Dump());
  if (news.written) core.OnPlanWritten(news.written->status(), now);
  // One that was written may not have been enough: some node knew more than this one.
  const bool wanted = membership.plan_wanted();
  if (wanted != core.plan_wanted() || (wanted && news.written)) core.OnPlanWanted(wanted, now);
  return news;
}

void WritePlan(Membership& membership, NodeCore& core, const node_action::WritePlan& write,
               Nanos now) {
  std::optional<Json> plan = Json::Parse(write.plan);
  TROUPE_CHECK(plan.has_value());  // this node's own
  const Status asked = membership.WritePlan(*std::move(plan), now);
  if (!asked.ok()) core.OnPlanWritten(asked, now);
}

}  // namespace troupe
