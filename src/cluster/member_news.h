// What a Membership has learnt from the store, told to the NodeCore that lives by it. Both are
// pure, and so is this.
#pragma once

#include "base/clock.h"
#include "cluster/members/membership.h"
#include "cluster/node_core.h"

namespace troupe {

// After each call of the membership that may have taught it something. Which news there were.
MemberNews TellNews(Membership& membership, NodeCore& core, Nanos now);

// The action of that name.
void WritePlan(Membership& membership, NodeCore& core, const node_action::WritePlan& write,
               Nanos now);

}  // namespace troupe
