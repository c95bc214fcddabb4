// One life of a node of a virtual cluster: the live parts of a node (node_parts.h) with its calls
// and its host, on an engine of a few bytes, a clock of its own and the world's network. Its users
// are virtual_users_for_test.h's.
#pragma once

#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "cluster/node_parts.h"
#include "cluster/virtual_users_for_test.h"
#include "cluster/virtual_world_for_test.h"

namespace troupe {

class VirtualNode final : private FrameLinks,
                          private NodeEngine,
                          private LinkEvents,
                          private Clock {
 public:
  struct Self {
    std::size_t index = 0;
    std::uint64_t start = 0;
    std::vector<std::string> addresses;  // of all nodes
    Nanos clock_from = 0;                // what its clock says at the beginning
    double clock_speed = 1;
    bool lies = false;
  };
  static constexpr Nanos kMs = 1'000'000, kSecond = 1'000'000'000;
  static NodeOptions Options(const VirtualShape& shape, const std::vector<std::string>& addresses);

  VirtualNode(VirtualWorld& world, Self self);
  ~VirtualNode() override;
  VirtualNode(const VirtualNode&) = delete;
  VirtualNode& operator=(const VirtualNode&) = delete;

  Nanos Now() const override {
    return self_.clock_from +
           static_cast<Nanos>(static_cast<double>(world_.time.now()) * self_.clock_speed);
  }
  // What its own threads would do by now.
  void Tick();
  void Drain() { (void)parts_->Drain(Now()); }
  void set_store_cut(bool cut) {
    if (store_ != nullptr) store_->set_cut(cut);
  }
  void set_disk(Nanos slowest, double fails) {
    disk_takes_ = slowest;
    disk_fails_ = fails;
  }
  // Damages an expert: in memory, if it holds any, or on a disk without checksums.
  void Rot();

  const std::string& name() const { return name_; }
  std::uint64_t start() const { return self_.start; }
  NodeParts& parts() { return *parts_; }
  const NodeCore& core() const { return parts_->core(); }
  VirtualUsers& users() { return *users_; }
  PeerCalls& calls() { return calls_; }
  PeerHost& host() { return host_; }
  HeldExperts& held() { return held_; }
  const std::map<ExpertId, std::vector<std::byte>>& slots() const { return slots_; }
  const PeerDirectory& directory() const { return directory_; }
  bool failed() const { return failed_; }
  // It neither lies nor has a damaged expert in its memory.
  bool is_sane() const { return !self_.lies && !has_rotten_; }
  Nanos DiskTime() {
    return static_cast<Nanos>(1 + world_.rng.Below(static_cast<std::uint64_t>(disk_takes_)));
  }
  bool DiskFails() { return disk_fails_ > 0 && world_.rng.Uniform() < disk_fails_; }
  void After(Nanos delay, std::function<void()> what) {
    world_.call(self_.index, delay, std::move(what));
  }

 private:
  // FrameLinks.
  Result<LinkId> Dial(std::string_view address) override;
  Status Send(LinkId link, Frame frame) override;
  void Break(LinkId link, Frame last) override;
  void Reset(LinkId link) override { world_.network->Reset(link); }
  void Close(LinkId link) override { world_.network->Close(link); }
  // NodeEngine.
  void Release(const ReleaseStep& step) override;
  void Hold(HoldStep step, FetchedExperts fetched) override;
  void Check(SpotCheck check) override;
  void ForgetKept() override;
  void Measure() override;
  void Choose(PlanJob job) override;
  void Wake() override;
  // LinkEvents.
  void OnOpened(LinkId link, const PeerIdentity& peer) override;
  void OnFrame(LinkId link, std::span<const std::byte> frame) override;
  void OnClosed(LinkId link, const Status& why) override;
  void OnUnreachable(LinkId link, const Status& why) override;

  void Join(const PeerHello& hello);
  void Say(const std::string& line);
  // As a host, where the expert is held: what it has in memory.
  Status Compute(ExpertId id, const Activations& input, std::span<const std::uint32_t> rows,
                 std::span<float> out);
  void HostSoon();
  // As its disk has it.
  std::vector<std::byte> Read(ExpertId id) const;
  SpotResult Look(const SpotCheck& check);
  SendFrame Sender() {
    return [this](LinkId link, Frame frame) { return Send(link, std::move(frame)); };
  }

  VirtualWorld& world_;
  const Self self_;
  const std::string name_;
  Nanos disk_takes_ = 30 * kMs;
  double disk_fails_ = 0;
  HeldExperts held_{VirtualModel::kGrid};
  std::map<ExpertId, std::vector<std::byte>> slots_;
  PeerDirectory directory_;
  PeerCalls calls_;
  PeerHost host_;
  std::unique_ptr<NodeParts> parts_;
  std::unique_ptr<VirtualUsers> users_;
  std::shared_ptr<FakeKvLink> store_;
  std::set<ExpertId> may_be_gone_;  // of those that it lets go, when that was decided
  std::optional<ExpertId> rotten_on_disk_;
  bool woken_ = false, hosting_ = false, failed_ = false, has_rotten_ = false;
};

}  // namespace troupe
