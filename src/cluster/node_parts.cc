#include "cluster/node_parts.h"

#include <algorithm>
#include <utility>

#include "cluster/member_news.h"
#include "cluster/members/cluster_names.h"

namespace troupe {
namespace {

constexpr Nanos kCountEvery = 1'000'000'000;   // what users activate is handed over
constexpr Nanos kLeaveWithin = 2'000'000'000;  // then the store finds out by itself

}  // namespace

NodeParts::NodeParts(NodeSelf self, NodeOptions options, Ports ports, Nanos now)
    : ports_(std::move(ports)),
      cluster_(self.hello.cluster),
      core_(self, std::move(options), now),
      second_opinion_(self.hello.width, Sender()),
      giver_(ports_.held, ports_.layouts, ports_.checksum_of, ports_.piece_bytes),
      fetcher_(
          {.row_bytes = self.hello.width * sizeof(float),
           .bytes_of = [this](std::uint32_t layer) { return ports_.layouts[layer].SlotBytes(); },
           .checksum_of = ports_.checksum_of},
          ports_.directory, Sender()),
      migration_([this](std::uint32_t layer) { return ports_.layouts[layer].SlotBytes(); }),
      count_at_(now) {}

void NodeParts::Join(const MembershipOptions& member, KvStore& store, Nanos now) {
  membership_ = std::make_unique<Membership>(member, store, now);
}

Status NodeParts::Begin(Nanos now) {
  Perform(now);
  return dial_problem_;
}

void NodeParts::OnStore(const KvEvent& event, Nanos now) {
  membership_->Told(event, now);
  LookAtMembership(now);
}

void NodeParts::LookAtMembership(Nanos now) {
  const MemberNews news = TellNews(*membership_, core_, now);
  if (news.begins) ports_.say(SayNewCluster(cluster_, membership_->other_clusters()));
  if (news.state && membership_->state() == MemberState::kMember) {
    ports_.say(fmt::format("etcd lists this node as {}", core_.name()));
  }
  if (news.kept_waiting) {
    ports_.say(fmt::format("etcd does not list this node: {}", membership_->problem()));
  }
  if (news.state && membership_->state() == MemberState::kWithoutStore) {
    ports_.say(fmt::format("etcd is away, so nobody plans: {}", membership_->problem()));
  }
  Perform(now);  // of all else the core was told
}

Result<std::string> NodeParts::Drain(Nanos now) {
  Result<std::string> says = core_.Drain();
  Perform(now);
  return says;
}

Result<std::string> NodeParts::PlanNow(Nanos now) { return core_.PlanNow(now); }

std::size_t NodeParts::Readmit(Nanos now) {
  const std::size_t count = core_.Readmit(now);
  Perform(now);
  return count;
}

void NodeParts::OnSharing(bool given_up, Nanos now) {
  core_.OnSharing(given_up);
  Perform(now);
}

void NodeParts::Leave(Nanos now) {
  leaving_since_ = now;
  if (membership_ != nullptr) membership_->Leave(now);
}

// In order, so that others need not wait for its lease to end.
bool NodeParts::HasLeft(Nanos now) const {
  if (!leaving_since_) return false;
  return membership_ == nullptr || membership_->state() == MemberState::kLeft ||
         now - *leaving_since_ > kLeaveWithin;
}

void NodeParts::Carry(HoldingStep step) {
  if (const auto* release = std::get_if<ReleaseStep>(&step)) return ports_.engine.Release(*release);
  auto& hold = std::get<HoldStep>(step);
  std::vector<std::uint32_t> coming =
      fetcher_.Begin(hold, ports_.calls.Links(), disk_bytes_per_second_);
  if (!coming.empty()) {
    hold.experts = std::move(coming);  // the others are of later steps
    fetching_ = std::move(hold);
    return ports_.engine.Wake();
  }
  ports_.engine.Hold(std::move(hold), {});
}

void NodeParts::GoOnFetching(Nanos now) {
  std::optional<FetchedExperts> fetched = fetcher_.OnTime(now);
  if (!fetched) return;
  ports_.engine.Hold(*std::exchange(fetching_, std::nullopt), *std::move(fetched));
}

void NodeParts::OnHeld(const Status& how, Nanos now) {
  if (!how.ok()) ports_.say(how.message());
  core_.OnHeld(HeldFlags(ports_.held), how.ok());
  Perform(now);
}

void NodeParts::OnPlanChosen(Result<PlanChoice> choice, Nanos now) {
  core_.OnPlanChosen(std::move(choice), now);
  Perform(now);
}

void NodeParts::OnTime(Nanos now) {
  if (membership_ != nullptr && membership_->next_tick() <= now) {
    membership_->Tick(now);
    LookAtMembership(now);
  }
  if (leaving_since_) return;
  // An expert that a peer's call is computed with could not go.
  for (const ReleaseStep& step : std::exchange(to_release_, {})) ports_.engine.Release(step);
  GoOnFetching(now);
  if (now >= count_at_) {
    count_at_ = now + kCountEvery;
    core_.OnActivity(ports_.calls.TakeActivity(), now);
    NodeMeasures measured = Measured();
    for (const std::string& line : speed_news_.Look(measured, now)) ports_.say(line);
    core_.OnMeasured(std::move(measured));
    if (ports_.log_trouble) {
      const std::string news = trouble_news_.Look(ports_.log_trouble(), now);
      if (!news.empty()) ports_.say(news);
    }
    for (const std::string& remark : ports_.calls.TakeRemarks()) ports_.say(remark);
    ports_.engine.Measure();
    migration_of_ = 0;  // whether it is settled may have changed alone
  }
  LookAtChecks(now);
  core_.OnTime(now);
  Perform(now);
  LookAtMigration(now);
}

void NodeParts::LookAtMigration(Nanos now) {
  const std::uint64_t changes = ports_.directory.version() + core_.changes();  // both go up alone
  if (!core_.plan() || std::exchange(migration_of_, changes) == changes) return;
  const PlanFollower& follower = core_.follower();
  const ExpertGrid grid = ports_.held.grid();
  std::vector<MigrationProgress::Node> here = {
      {.name = core_.name(),
       .holds = [&](ExpertId id) { return follower.held()[grid.Index(id)] != 0; },
       .is_done = core_.settled()}};
  const std::vector<PeerEntry> entries = ports_.directory.Entries();
  for (const PeerEntry& peer : entries) {
    if (peer.link == 0 || peer.held.grid().Count() == 0) continue;  // it has not told yet
    here.push_back(
        {.name = peer.name, .holds = [&peer](ExpertId id) { return peer.held.Has(id); }});
  }
  migration_.Look(*core_.plan(), here, now);
}

void NodeParts::OnMeasured(double disk_bytes_per_second) {
  disk_bytes_per_second_ = disk_bytes_per_second;
  core_.OnMeasured(Measured());
}

NodeMeasures NodeParts::Measured() const {
  NodeMeasures measured{.disk_bytes_per_second = disk_bytes_per_second_, .links = {}};
  const RunningLine computing = ports_.host.computing();
  if (computing.measured()) {
    measured.seconds_an_expert = computing.at_zero();
    measured.seconds_a_row = computing.slope();
  }
  if (const CallSeconds seconds = ports_.calls.seconds(); seconds.rows > 0) {
    measured.seconds_a_remote_row =
        (seconds.way + seconds.waited) / static_cast<double>(seconds.rows);
  }
  for (const MeasuredLink& link : ports_.calls.Links()) {
    measured.links.push_back(
        {.peer = link.peer,
         .round_trip_seconds = link.round_trip_seconds,
         .bytes_per_second = link.byte_seconds > 0 ? 1 / link.byte_seconds : 0});
  }
  return measured;
}

std::vector<std::uint8_t> HeldFlags(const HeldExperts& held) {
  const ExpertGrid& grid = held.grid();
  std::vector<std::uint8_t> now(grid.Count());
  for (std::uint32_t layer = 0; layer < grid.layers; ++layer) {
    for (std::uint32_t expert = 0; expert < grid.experts; ++expert) {
      now[grid.Index({layer, expert})] = held.Holds({layer, expert}) ? 1 : 0;
    }
  }
  return now;
}

}  // namespace troupe
