#include "cluster/virtual_node_for_test.h"

#include <algorithm>

#include "cluster/virtual_rules_for_test.h"

namespace troupe {
namespace {

constexpr std::uint64_t kVirtualExpertBytes = 100;

CallShape VirtualCalls() {
  return {.grid = VirtualModel::kGrid,
          .width = VirtualModel::kWidth,
          .forms = std::vector<RowForm>(VirtualModel::kGrid.layers, RowForm::kFloat)};
}

}  // namespace

NodeOptions VirtualNode::Options(const VirtualShape& shape,
                                 const std::vector<std::string>& addresses) {
  return {.addresses = shape.has_store ? std::vector<std::string>() : addresses,
          .report_every = 3 * kSecond,
          .planner = {.plan_every = 15 * kSecond,
                      .gather = 2 * kSecond,
                      .forget_after = 10 * kSecond,
                      .copies = shape.copies}};
}

VirtualNode::VirtualNode(VirtualWorld& world, Self self)
    : world_(world),
      self_(std::move(self)),
      name_(fmt::format("n{}", self_.index)),
      calls_(VirtualCalls(), directory_, Sender(), *this,
             {.rules = {.late_after = 2, .least = 20 * kMs, .without_disk = 2 * kSecond},
              .verify = world.shape.verify,
              .seed = self_.start}),
      host_(VirtualCalls(), held_,
            [this](ExpertId id, const Activations& input, std::span<const std::uint32_t> rows,
                   std::span<float> out) { return Compute(id, input, rows, out); },
            Sender(), *this, {.most_waiting = 3, .most_bytes = 2'000, .most_of_one_message = 64}) {
  const PeerHello hello{.start_id = self_.start,
                        .model = {7, 8},
                        .arithmetic = 9,
                        .grid = VirtualModel::kGrid,
                        .width = VirtualModel::kWidth,
                        .form = RowForm::kFloat,
                        .cluster = "lab",
                        .node = name_,
                        .address = self_.addresses[self_.index]};
  const VirtualModel& model = VirtualWorld::model();
  parts_ = std::make_unique<NodeParts>(
      NodeSelf{.hello = hello,
               .first_layer = VirtualModel::kFirstLayer,
               .experts_per_token = 2,
               .expert_bytes = kVirtualExpertBytes,
               .experts_travel = world.shape.packed,
               .most_held = world.shape.most_held,
               .held = HeldFlags(held_)},
      Options(world.shape, self_.addresses),
      NodeParts::Ports{.links = *this,
                       .engine = *this,
                       .directory = directory_,
                       .calls = calls_,
                       .host = host_,
                       .held = held_,
                       .layouts = model.layouts(),
                       .checksum_of =
                           [this, &model](ExpertId id) {
                             return world_.shape.packed ? std::optional(model.ChecksumOf(id))
                                                        : std::nullopt;
                           },
                       .say = [this](const std::string& line) { Say(line); },
                       .fail =
                           [this](const Status& why) {
                             failed_ = true;
                             Say("would end: " + why.message());
                           },
                       .piece_bytes = 50},
      Now());
  users_ = std::make_unique<VirtualUsers>(world_, *this);
  world_.network->Start(self_.index, *this);
  if (world.shape.has_store) Join(hello);
  TROUPE_CHECK(parts_->Begin(Now()).ok());
}

VirtualNode::~VirtualNode() {
  if (store_ != nullptr) store_->Close();
}

void VirtualNode::Join(const PeerHello& hello) {
  store_ = world_.store.Connect(
      [this](const KvEvent& event) { After(0, [this, event] { parts_->OnStore(event, Now()); }); });
  parts_->Join({.cluster = hello.cluster,
                .node = hello.node,
                .address = hello.address,
                .model = ModelText(hello),
                .start = std::to_string(hello.start_id),
                .ttl = 5 * kSecond},
               *store_, Now());
}

void VirtualNode::Say(const std::string& line) {
  world_.timeline.Add(world_.time.now(), "{}: {}", name_, line);
}

void VirtualNode::Tick() {
  parts_->OnTime(Now());
  users_->Go();
}

Result<LinkId> VirtualNode::Dial(std::string_view address) {
  return world_.network->Dial(self_.index, address);
}

Status VirtualNode::Send(LinkId link, Frame frame) {
  return world_.network->Send(self_.index, link, std::move(frame));
}

void VirtualNode::Break(LinkId link, Frame last) {
  const auto refused = DecodePeerRefused(last);
  if (refused.ok() && refused->reason == PeerRefused::Reason::kWrongAnswer) {
    if (const auto other = world_.network->OtherEnd(link)) world_.rules->OnThrownOut(*this, *other);
  }
  world_.network->Break(self_.index, link, std::move(last));
}

void VirtualNode::OnOpened(LinkId link, const PeerIdentity& peer) {
  parts_->OnOpened(link, peer, Now());
}

void VirtualNode::OnFrame(LinkId link, std::span<const std::byte> frame) {
  parts_->OnFrame(link, {frame.begin(), frame.end()}, Now());
  HostSoon();
  users_->Go();
}

void VirtualNode::OnClosed(LinkId link, const Status& why) {
  parts_->OnClosed(link, why, Now());
  users_->Go();
}

void VirtualNode::OnUnreachable(LinkId link, const Status& why) {
  parts_->OnUnreachable(link, why, Now());
}

void VirtualNode::HostSoon() {
  if (host_.waiting() == 0 || std::exchange(hosting_, true)) return;
  After(static_cast<Nanos>(1 + world_.rng.Below(20)) * kMs, [this] {
    hosting_ = false;
    host_.AnswerNext();
    HostSoon();
  });
}

Status VirtualNode::Compute(ExpertId id, const Activations& input,
                            std::span<const std::uint32_t> rows, std::span<float> out) {
  const auto use = held_.Find(id);
  if (!use) return Error(Code::kNotFound, "not held");
  const float factor = VirtualModel::FactorOf(use->weights());
  const bool lies = self_.lies && world_.rng.Below(3) == 0;
  for (std::size_t i = 0; i < out.size(); ++i) {
    const float* const row = input.Values(rows[i / VirtualModel::kWidth]);
    const float right = factor * row[i % VirtualModel::kWidth];
    out[i] = lies ? VirtualRules::Lie(right) : right;
  }
  return OkStatus();
}

// While a call is computed with it, an expert cannot go.
void VirtualNode::Release(const ReleaseStep& step) {
  if (world_.rules->MayBeGone(*this, step.id)) may_be_gone_.insert(step.id);
  After(static_cast<Nanos>(world_.rng.Below(30)) * kMs, [this, step] {
    if (world_.rng.Below(6) == 0) return parts_->ReleaseLater(step);
    world_.timeline.Add(world_.time.now(), "{} lets {} go", name_, ToString(step.id));
    held_.Remove(step.id);
    slots_.erase(step.id);
    world_.rules->OnReleased(*this, step.id, may_be_gone_.erase(step.id) > 0);
    parts_->OnHeld(OkStatus(), Now());
  });
}

void VirtualNode::Hold(HoldStep step, FetchedExperts fetched) {
  Nanos takes = 1;
  for (const std::uint32_t expert : step.experts) {
    if (!fetched.contains({step.layer, expert})) takes += DiskTime();
  }
  After(takes, [this, step = std::move(step), fetched = std::move(fetched)] {
    for (const std::uint32_t expert : step.experts) {
      const ExpertId id{step.layer, expert};
      const auto came = fetched.find(id);
      if (came == fetched.end() && DiskFails()) {
        return parts_->OnHeld(Error(Code::kDataLoss, "the disk fails"), Now());
      }
      slots_[id] = came != fetched.end() ? came->second : Read(id);
      held_.Add(id, VirtualWorld::model().layouts()[id.layer].At(slots_[id].data()));
      world_.timeline.Add(world_.time.now(), "{} holds {}{}", name_, ToString(id),
                          came != fetched.end() ? " from a peer" : "");
      world_.rules->OnHolds(*this, id);
    }
    parts_->OnHeld(OkStatus(), Now());
  });
}

std::vector<std::byte> VirtualNode::Read(ExpertId id) const {
  std::vector<std::byte> bytes = VirtualWorld::model().BytesOf(id);
  if (rotten_on_disk_ == id) bytes[0] ^= std::byte{1};
  return bytes;
}

void VirtualNode::Rot() {
  if (!world_.shape.packed) {
    rotten_on_disk_ =
        ExpertId{VirtualModel::kFirstLayer,
                 static_cast<std::uint32_t>(world_.rng.Below(VirtualModel::kGrid.experts))};
    has_rotten_ = true;
    return;
  }
  if (slots_.empty()) return;
  auto at = slots_.begin();
  std::advance(at, static_cast<std::ptrdiff_t>(world_.rng.Below(slots_.size())));
  at->second[0] ^= std::byte{1};
  has_rotten_ = true;
  world_.timeline.Add(world_.time.now(), "{} rots at {}", name_, ToString(at->first));
}

// With what is held, or else with what the disk has.
SpotResult VirtualNode::Look(const SpotCheck& check) {
  const VirtualModel& model = VirtualWorld::model();
  const auto slot = slots_.find(check.id);
  const std::vector<std::byte> bytes = slot != slots_.end() ? slot->second : Read(check.id);
  const float factor = VirtualModel::FactorOf(model.layouts()[check.id.layer].At(bytes.data()));
  SpotResult result;
  for (std::size_t i = 0; i < check.answer.size(); ++i) {
    float asked = 0;
    std::memcpy(&asked, check.asked.data() + i * sizeof(float), sizeof(float));
    result.own.push_back(factor * asked);
  }
  using Found = SpotResult::Found;
  if (AreSameRows(result.own, check.answer)) {
    result.found = Found::kTrue;
  } else if (!world_.shape.packed) {
    result.found = Found::kUnproven;
  } else {
    const bool whole = ContainerChecksum(bytes) == model.ChecksumOf(check.id);
    result.found = whole ? Found::kPeerWrong : Found::kOwnWrong;
  }
  return result;
}

void VirtualNode::Check(SpotCheck check) {
  After(DiskTime(), [this, check = std::move(check)] {
    if (DiskFails()) return parts_->OnChecked(check, Error(Code::kDataLoss, "the disk"), Now());
    parts_->OnChecked(check, Look(check), Now());
  });
}

void VirtualNode::ForgetKept() {
  After(0, [this] { parts_->OnForgotten(world_.rng.Below(2) == 0); });
}

void VirtualNode::Measure() {
  // An expert takes half of that on average, and a step up to 16 experts.
  After(0, [this] {
    const double seconds = static_cast<double>(disk_takes_) * 1e-9 / 2;
    parts_->OnMeasured(kVirtualExpertBytes / seconds);
  });
}

void VirtualNode::Choose(PlanJob job) {
  After(static_cast<Nanos>(1 + world_.rng.Below(400)) * kMs,
        [this, job = std::move(job)] { parts_->OnPlanChosen(ChoosePlan(job), Now()); });
}

void VirtualNode::Wake() {
  if (std::exchange(woken_, true)) return;
  After(0, [this] {
    woken_ = false;
    parts_->OnTime(Now());
  });
}

}  // namespace troupe
