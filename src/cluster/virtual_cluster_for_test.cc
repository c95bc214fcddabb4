#include "cluster/virtual_cluster_for_test.h"

#include <algorithm>
#include <utility>

namespace troupe {

VirtualShape VirtualShapeOf(std::uint64_t seed, bool has_store) {
  Rng rng(seed * 2 + (has_store ? 1 : 0));
  VirtualShape shape{.nodes = 2 + rng.Below(3),
                     .most_held = static_cast<std::uint32_t>(3 + rng.Below(5)),
                     .copies = static_cast<std::uint32_t>(1 + rng.Below(4) / 3),
                     .seed = seed,
                     .has_store = has_store,
                     .packed = rng.Below(4) > 0};
  for (int fault = 0; fault < static_cast<int>(VirtualFault::kCount); ++fault) {
    const auto one = static_cast<VirtualFault>(fault);
    const bool of_store = one >= VirtualFault::kStoreAway && one <= VirtualFault::kStoreCompact;
    const bool is_rare = one == VirtualFault::kLiar || one == VirtualFault::kRot ||
                         one == VirtualFault::kStoreRestore;
    if (of_store && !has_store) continue;
    if (rng.Below(is_rare ? 8 : 2) == 0) shape.faults.insert(one);
  }
  const bool is_bad =
      shape.faults.contains(VirtualFault::kLiar) || shape.faults.contains(VirtualFault::kRot);
  shape.verify = is_bad ? 1 : rng.Below(4) == 0 ? 0.2 : 0;
  return shape;
}

VirtualCluster::VirtualCluster(const VirtualShape& shape)
    : world_(shape), rules_(world_, [this](std::size_t i) { return node(i); }) {
  for (std::size_t i = 0; i < shape.nodes; ++i) {
    addresses_.push_back(fmt::format("node{}:7070", i));
    const bool differ = shape.faults.contains(VirtualFault::kClocks);
    clocks_from_.push_back(differ ? Span(0, 7'200'000) : 0);
    clocks_speed_.push_back(differ ? 0.98 + 0.04 * world_.rng.Uniform() : 1);
  }
  lives_.resize(shape.nodes);
  world_.call = [this](std::size_t i, Nanos delay, std::function<void()> what) {
    Call(i, delay, std::move(what));
  };
  world_.network =
      std::make_unique<VirtualNetwork>(world_.time, world_.rng, world_.call, addresses_);
  world_.time.RunFor(kSecond);
  for (std::size_t i = 0; i < shape.nodes; ++i) Start(i);
}

VirtualCluster::~VirtualCluster() = default;

void VirtualCluster::Call(std::size_t i, Nanos delay, std::function<void()> what) {
  world_.time.After(delay, [this, i, number = lives_[i].number, happens = std::move(what)] {
    Happen(i, number, happens);
  });
}

void VirtualCluster::Happen(std::size_t i, std::uint64_t number,
                            const std::function<void()>& what) {
  Life& life = lives_[i];
  if (life.node == nullptr || life.number != number || !rules_.broken().empty()) return;
  if (life.hangs) {
    life.late.push_back(what);
    return;
  }
  what();
  rules_.OnStep(*life.node);
}

void VirtualCluster::TickLater(std::size_t i) {
  Call(i, lives_[i].tick, [this, i] {
    lives_[i].node->Tick();
    TickLater(i);
  });
}

void VirtualCluster::Start(std::size_t i) {
  Life& life = lives_[i];
  if (life.node != nullptr) return;
  world_.timeline.Add(world_.time.now(), "n{} starts", i);
  life.tick = Span(20, 120);
  life.node = std::make_unique<VirtualNode>(
      world_, VirtualNode::Self{.index = i,
                                .start = ++starts_,
                                .addresses = addresses_,
                                .clock_from = clocks_from_[i],
                                .clock_speed = clocks_speed_[i],
                                .lies = world_.Has(VirtualFault::kLiar) && i + 1 == lives_.size()});
  TickLater(i);
}

void VirtualCluster::Kill(std::size_t i, bool silently) {
  Life& life = lives_[i];
  if (life.node == nullptr) return;
  world_.timeline.Add(world_.time.now(), "n{} dies", i);
  GoOn(i);
  CountEvents(*life.node);
  rules_.OnKilled(*life.node);
  world_.network->Kill(i, silently);
  life.node.reset();
  ++life.number;
}

void VirtualCluster::Hang(std::size_t i, Nanos time) {
  Life& life = lives_[i];
  if (life.node == nullptr || std::exchange(life.hangs, true)) return;
  world_.timeline.Add(world_.time.now(), "n{} hangs", i);
  world_.network->Hang(i);
  world_.time.After(time, [this, i, number = life.number] {
    if (lives_[i].number == number) GoOn(i);
  });
}

// What was due comes in its order, and its own timers before or after that.
void VirtualCluster::GoOn(std::size_t i) {
  Life& life = lives_[i];
  if (!std::exchange(life.hangs, false)) return;
  world_.timeline.Add(world_.time.now(), "n{} goes on", i);
  world_.network->GoOn(i);
  std::vector<std::function<void()>> late = std::exchange(life.late, {});
  if (world_.rng.Below(2) == 0) Call(i, 0, [this, i] { lives_[i].node->Tick(); });
  for (std::function<void()>& what : late) Call(i, 0, std::move(what));
}

void VirtualCluster::Run(Nanos time) { world_.time.RunFor(time); }

std::string VirtualCluster::Live() {
  std::vector<VirtualFault> faults(world_.shape.faults.begin(), world_.shape.faults.end());
  Run(Span(0, 10'000));
  const auto goes_on = [this](int step) {
    return rules_.broken().empty() && (step < 30 || world_.time.now() < store_back_at_);
  };
  for (int step = 0; goes_on(step); ++step) {
    if (!faults.empty() && world_.rng.Below(3) > 0) {
      Fault(faults[world_.rng.Below(faults.size())]);
    }
    for (std::size_t i = 0; i < lives_.size(); ++i) {
      if (node(i) != nullptr && !lives_[i].hangs) node(i)->users().AskLayer(false);
    }
    Run(Span(0, world_.rng.Below(4) == 0 ? 6'000 : 800));
  }
  EndFaults();
  if (Settle()) Probe();
  // One dies for good: the others share what it held.
  if (rules_.broken().empty() && lives_.size() > 2 && world_.rng.Below(4) == 0) {
    Kill(1 + world_.rng.Below(lives_.size() - 1), world_.rng.Below(2) == 0);
    if (Settle()) Probe();
  }
  CountEvents();
  return rules_.broken();
}

// True: all is well, and users may be asked.
bool VirtualCluster::Settle() {
  const bool is_bad = world_.Has(VirtualFault::kLiar) || world_.Has(VirtualFault::kRot);
  std::optional<std::string> why;
  int well = 0;
  for (int second = 0; second < 250 && rules_.broken().empty(); ++second) {
    Run(kSecond);
    // Who was thrown out stays away.
    why = is_bad ? rules_.WhyNotAtRest() : rules_.WhyNotWell();
    well = why ? 0 : well + 1;
    if (well == 3) return true;
  }
  if (why) rules_.Break("not well again: " + *why);
  return false;
}

// Every node gets what the others hold from them.
void VirtualCluster::Probe() {
  for (Life& life : lives_) {
    if (life.node != nullptr) life.node->users().AskLayer(true);
  }
  Run(5 * kSecond);
  for (Life& life : lives_) {
    if (life.node == nullptr || !life.node->users().waits()) continue;
    rules_.Break(fmt::format("in the end a layer of {} waits", life.node->name()));
  }
}

}  // namespace troupe
