// What goes wrong in a virtual cluster, and how it ends.
#include <algorithm>
#include <utility>

#include "cluster/virtual_cluster_for_test.h"

namespace troupe {

void VirtualCluster::KillFor(std::size_t i, bool silently, Nanos time) {
  Kill(i, silently);
  world_.time.After(time, [this, i] { Start(i); });
}

void VirtualCluster::StopPath() {
  const std::size_t from = Any(), to = Any();
  if (from == to) return;
  world_.timeline.Add(world_.time.now(), "from n{} to n{} nothing passes", from, to);
  world_.network->SetStopped(from, to, true);
  world_.time.After(Span(100, world_.rng.Below(4) == 0 ? 40'000 : 8'000),
                    [this, from, to] { world_.network->SetStopped(from, to, false); });
}

void VirtualCluster::SlowPath() {
  const std::size_t from = Any(), to = Any();
  const double speed = 500.0 * static_cast<double>(1 + world_.rng.Below(100));
  world_.timeline.Add(world_.time.now(), "from n{} to n{} {} bytes a second pass", from, to, speed);
  world_.network->SetBytesPerSecond(from, to, speed);
  world_.time.After(Span(1'000, 15'000),
                    [this, from, to] { world_.network->SetBytesPerSecond(from, to, 1e8); });
}

void VirtualCluster::Fault(VirtualFault fault) {
  const std::size_t i = Any();
  VirtualNode* const some = node(i);
  switch (fault) {
    case VirtualFault::kCut:
      world_.timeline.Add(world_.time.now(), "a link breaks");
      return world_.network->CutAny();
    case VirtualFault::kStop:
      return StopPath();
    case VirtualFault::kSlow:
      return SlowPath();
    case VirtualFault::kTight:
      return world_.network->set_most_unsent(world_.rng.Below(2) == 0 ? 1'000 : 1 << 20);
    case VirtualFault::kKill:
      return KillFor(i, false, Span(0, 20'000));
    case VirtualFault::kPowerLoss:
      return KillFor(i, true, Span(0, 20'000));
    case VirtualFault::kHang:
      return Hang(i, Span(50, world_.rng.Below(3) == 0 ? 30'000 : 5'000));
    case VirtualFault::kBadDisk:
      if (some != nullptr) some->set_disk(Span(20, 2'000), 0.4 * world_.rng.Uniform());
      return;
    case VirtualFault::kDrain:
      if (some == nullptr || lives_[i].hangs || world_.rng.Below(3) > 0) return;
      Call(i, 0, [some] { some->Drain(); });
      return world_.time.After(Span(3'000, 20'000), [this, i] { KillFor(i, false, kSecond); });
    case VirtualFault::kRot:
      if (some != nullptr && world_.rng.Below(4) == 0) some->Rot();
      return;
    case VirtualFault::kClocks:
    case VirtualFault::kLiar:
    case VirtualFault::kCount:
      return;  // from the beginning
    default:
      return FaultOfStore(fault, i);
  }
}

void VirtualCluster::FaultOfStore(VirtualFault fault, std::size_t i) {
  switch (fault) {
    case VirtualFault::kStoreAway:
      return StopStore();
    case VirtualFault::kStoreCut:
      if (node(i) == nullptr) return;
      world_.timeline.Add(world_.time.now(), "n{} is cut off from the store", i);
      node(i)->set_store_cut(true);
      return world_.time.After(Span(100, 20'000), [this, i, number = lives_[i].number] {
        if (node(i) != nullptr && lives_[i].number == number) node(i)->set_store_cut(false);
      });
    case VirtualFault::kStoreLoses:
      return world_.store.set_loss(0.3 * world_.rng.Uniform());
    case VirtualFault::kStoreCompact:
      return world_.store.state().Compact();
    case VirtualFault::kStoreRestore:
      if (world_.time.now() < store_back_at_) return;  // it is not there
      if (!backup_ || world_.rng.Below(2) == 0) {
        backup_ = world_.store.state();
        return;
      }
      world_.timeline.Add(world_.time.now(), "the store is restored from a backup");
      rules_.OnRestored();
      world_.store.Stop();
      world_.store.Restore(*backup_);
      return world_.store.Start();
    default:
      return;
  }
}

// Seldom for minutes, in which the run goes on.
void VirtualCluster::StopStore() {
  if (world_.time.now() < store_back_at_) return;
  const Nanos away = world_.rng.Below(40) == 0 ? Span(20'000, 300'000) : Span(100, 20'000);
  world_.timeline.Add(world_.time.now(), "the store is away for {} ms", away / kMs);
  world_.store.Stop();
  store_back_at_ = world_.time.now() + away;
  world_.time.After(away, [this] { world_.store.Start(); });
}

void VirtualCluster::EndFaults() {
  world_.timeline.Add(world_.time.now(), "no faults from now on");
  world_.network->Mend();
  world_.store.set_loss(0);
  world_.store.Start();
  for (std::size_t i = 0; i < lives_.size(); ++i) {
    GoOn(i);
    if (node(i) != nullptr && node(i)->core().draining()) Kill(i, false);
    Start(i);
    node(i)->set_disk(30 * kMs, 0);
    node(i)->set_store_cut(false);
  }
}

void VirtualCluster::CountEvents(VirtualNode& node) {
  VirtualEvents& events = world_.events;
  const CallCounters calls = node.calls().counters();
  events.Count("calls answered", calls.answered);
  events.Count("calls hedged", calls.hedges);
  events.Count("calls refused", calls.refused);
  events.Count("calls lost", calls.lost);
  events.Count("calls cancelled", calls.cancelled);
  events.Count("loads overtaken", calls.overtook);
  events.Count("busy holders asked again", calls.asked_again);
  const FetchCounters& fetched = node.parts().fetched();
  events.Count("experts fetched", fetched.experts);
  events.Count("experts resumed from another peer", fetched.resumed);
  events.Count("experts left to the disk", fetched.left);
  events.Count("wrong answers found", node.parts().checks().wrong);
  events.Count("own wrong bytes found", node.parts().checks().own_wrong);
  events.Count("plans that the store refused", node.core().plans_unwritten());
}

void VirtualCluster::CountEvents() {
  for (Life& life : lives_) {
    if (life.node != nullptr) CountEvents(*life.node);
  }
  const VirtualLinkCounters& links = world_.network->counters();
  world_.events.Count("links opened", links.opened);
  world_.events.Count("links without a sign of life", links.silent);
  world_.events.Count("links where too much waited", links.full);
  world_.events.Count("peers refused", links.refused);
  world_.events.Count("dials in vain", links.unreachable);
}

}  // namespace troupe
