#include "cluster/cluster_node.h"

#include <algorithm>
#include <chrono>
#include <random>
#include <system_error>
#include <utility>

#include "cluster/face/node_buffers.h"
#include "cluster/member_news.h"
#include "cluster/members/cluster_names.h"
#include "cluster/whole_expert.h"
#include "gguf/reader.h"
#include "runtime/arithmetic_digest.h"
#include "store/model_fingerprint.h"

namespace troupe {
namespace {

constexpr Nanos kLook = 20'000'000;  // how often what is due is looked at
constexpr Nanos kShortestLook = 100'000;
constexpr Nanos kCountEvery = 1'000'000'000;   // what users activate is handed over
constexpr std::uint32_t kSlotsForTokens = 2;   // times the experts of a token are kept for a cache
constexpr std::size_t kMostEvents = 200;       // that are remembered
constexpr Nanos kLeaveWithin = 2'000'000'000;  // then etcd finds out by itself

CallShape ShapeOf(const Engine& engine) {
  const ModelConfig& config = engine.config();
  CallShape shape{.grid = {.layers = config.layers, .experts = config.moe.routing.experts},
                  .width = static_cast<std::uint32_t>(config.width),
                  .forms = {}};
  for (const ExpertLayout& layout : engine.expert_layouts()) {
    const bool codes =
        !layout.empty() && ReadsCodesAlone(layout.matrices[0].type, layout.matrices[1].type);
    shape.forms.push_back(codes ? RowForm::kInt8 : RowForm::kFloat);
  }
  return shape;
}

// What is left is the cache that other experts pass through. Of its slots a swap borrows one.
std::uint32_t MostHeld(const Engine& engine) {
  const ModelConfig& config = engine.config();
  const std::uint32_t experts = config.moe.routing.experts;
  if (engine.plan().memory.all_resident) return config.layers * experts;
  const std::uint32_t slots = engine.plan().memory.slots;
  const std::uint32_t cache = std::max(kSlotsForTokens * config.moe.routing.top_k, slots / 8);
  return slots - std::min(slots, cache);
}

std::uint64_t LargestExpert(const Engine& engine) {
  return SlotLoads::SlotBytes(engine.expert_layouts()).count();
}

// Nothing else would show that a peer gives another expert.
bool ExpertsTravel(const Engine& engine) {
  return engine.ChecksumOf({engine.config().moe.leading_dense, 0}).has_value();
}

Result<PeerHello> HelloOf(Engine& engine, const ClusterOptions& options, const CallShape& shape) {
  TROUPE_ASSIGN_OR_RETURN(const GgufModel file, GgufModel::Open(engine.path()));
  TROUPE_ASSIGN_OR_RETURN(const ModelFingerprint fingerprint, FingerprintModel(file));
  TROUPE_ASSIGN_OR_RETURN(const std::uint64_t arithmetic, ArithmeticDigest(engine));
  std::random_device random;
  const bool all_codes = std::ranges::count(shape.forms, RowForm::kFloat) == 0;
  return PeerHello{.start_id = (std::uint64_t{random()} << 32) | random(),
                   .model = fingerprint.words,
                   .arithmetic = arithmetic,
                   .grid = shape.grid,
                   .width = shape.width,
                   .form = all_codes ? RowForm::kInt8 : RowForm::kFloat,
                   .cluster = options.cluster,
                   .node = options.name,
                   .address = options.address};
}

}  // namespace

ClusterNode::ClusterNode(Engine& engine, ClusterOptions options, CallShape shape)
    : engine_(engine),
      options_(std::move(options)),
      calls_(std::move(shape), directory_,
             [this](LinkId link, std::vector<std::byte> frame) {
               return links_->Send(link, std::move(frame));
             },
             clock_,
             {.rules = options_.calls,
              .verify = options_.verify,
              .most_unread = BuffersFor(engine.config()).unread}),
      checker_(
          static_cast<std::uint32_t>(engine.config().width), engine.config().moe.expert_ff,
          [&engine](ExpertId id, const std::function<void(const Mlp&)>& use) {
            return engine.WithExpert(id, use);
          },
          [&engine](ExpertId id, const Mlp& weights) -> std::optional<bool> {
            const auto checksum = engine.ChecksumOf(id);
            if (!checksum) return std::nullopt;
            return HasChecksum(engine.expert_layouts()[id.layer], weights, *checksum);
          }),
      second_opinion_(static_cast<std::uint32_t>(engine.config().width),
                      [this](LinkId link, std::vector<std::byte> frame) {
                        return links_->Send(link, std::move(frame));
                      }),
      giver_(engine.held(), engine.expert_layouts(),
             [&engine](ExpertId id) { return engine.ChecksumOf(id); }),
      fetcher_(StepFetcher::ModelOf(engine), directory_,
               [this](LinkId link, std::vector<std::byte> frame) {
                 return links_->Send(link, std::move(frame));
               }) {}

Result<std::unique_ptr<ClusterNode>> ClusterNode::Open(Engine& engine, ClusterOptions options) {
  const CallShape shape = ShapeOf(engine);
  if (!TakesWidth(engine.offload_options().peer_answers, shape.width)) {
    return InvalidArgument("peers cannot answer in {}: rows of {} found, a multiple of {} expected",
                           ToString(engine.offload_options().peer_answers), shape.width,
                           kGroupCols);
  }
  TROUPE_ASSIGN_OR_RETURN(const PeerHello hello, HelloOf(engine, options, shape));
  const NodeBuffers buffers = BuffersFor(engine.config());
  options.transport.most_frame = buffers.frame;
  options.transport.most_unsent = buffers.unsent;
  options.transport.most_buffered = buffers.received;
  std::unique_ptr<ClusterNode> node(new ClusterNode(engine, std::move(options), shape));
  TROUPE_ASSIGN_OR_RETURN(node->links_, PeerLinks::Listen(node->options_.transport));
  TROUPE_ASSIGN_OR_RETURN(std::unique_ptr<ExpertHost> computes,
                          ExpertHost::Create(engine.held(), engine.config().moe.expert_ff,
                                             node->options_.peer_threads));
  TROUPE_ASSIGN_OR_RETURN(
      node->host_, PeerHost::Create(shape, engine.held(), std::move(computes),
                                    [self = node.get()](LinkId link, std::vector<std::byte> frame) {
                                      return self->links_->Send(link, std::move(frame));
                                    },
                                    node->clock_, {.most_bytes = buffers.waiting}));
  const ModelConfig& config = engine.config();
  const MutexLock lock(node->mu_);
  node->core_ = std::make_unique<NodeCore>(NodeSelf{.hello = hello,
                                                    .first_layer = config.moe.leading_dense,
                                                    .experts_per_token = config.moe.routing.top_k,
                                                    .expert_bytes = LargestExpert(engine),
                                                    .experts_travel = ExpertsTravel(engine),
                                                    .most_held = MostHeld(engine),
                                                    .held = node->HeldNow()},
                                           node->options_.node, node->clock_.Now());
  if (node->options_.etcd) {
    TROUPE_ASSIGN_OR_RETURN(node->etcd_, EtcdStore::Open(*node->options_.etcd,
                                                         [self = node.get()](const KvEvent& event) {
                                                           self->OnStore(event);
                                                         }));
    const MembershipOptions member{.cluster = node->options_.cluster,
                                   .node = node->options_.name,
                                   .address = node->options_.address,
                                   .model = ModelText(hello),
                                   .start = fmt::format("{:016x}", hello.start_id),
                                   .new_cluster = node->options_.new_cluster,
                                   .ttl = node->options_.lease};
    TROUPE_RETURN_IF_ERROR(Validate(member));
    node->membership_ = std::make_unique<Membership>(member, *node->etcd_, node->clock_.Now());
  }
  engine.set_peers(node->calls_);
  return node;
}

Status ClusterNode::Begin(BetweenPasses between) {
  between_ = std::move(between);
  links_->Start(*this);
  {
    const MutexLock lock(mu_);
    Perform();
    TROUPE_RETURN_IF_ERROR(dial_problem_);
  }
  try {
    thread_ = std::thread([this] { Main(); });
    chooser_ = std::thread([this] { ChooseMain(); });
  } catch (const std::system_error& error) {
    return Error(Code::kResourceExhausted, "no thread for the cluster: {}", error.what());
  }
  return OkStatus();
}

ClusterNode::~ClusterNode() {
  {
    const MutexLock lock(mu_);
    leaving_since_ = clock_.Now();
    if (membership_ != nullptr) membership_->Leave(*leaving_since_);
    changed_.NotifyAll();
    choose_.NotifyAll();
  }
  if (thread_.joinable()) thread_.join();
  if (chooser_.joinable()) chooser_.join();
  etcd_.reset();
  if (host_ != nullptr) host_->Stop();  // it sends by the links,
  {
    const MutexLock lock(mu_);
    stopping_ = true;
  }
  links_.reset();  // whose thread tells it of calls
}

// What the disk has given lately; before anything was read, what a probe said of it.
void ClusterNode::MeasureOnEngine() {
  const std::optional<OffloadReport> report = engine_.offload_report();
  if (!report) return;
  const double speed = report->recent_bytes_per_second > 0
                           ? report->recent_bytes_per_second
                           : engine_.plan().costs.medium.bytes_per_second;
  const MutexLock lock(mu_);
  disk_bytes_per_second_ = speed;
  TakeDistribution(*report);
}

// Of each size of passes, when sharing begins or ends to rest.
void ClusterNode::TakeDistribution(const OffloadReport& report) {
  for (std::size_t i = 0; i < report.distribution.size(); ++i) {
    const bool rested = i < distribution_.size() && distribution_[i].rests;
    const DistributionReport& now = report.distribution[i];
    if (now.rests == rested) continue;
    Say(now.rests
            ? fmt::format("the own disk is sooner: {}", ToString(now))
            : fmt::format("passes of {} rows or more are shared with peers again", now.least_rows));
  }
  distribution_ = report.distribution;
  judged_ = {report.judged.begin(), report.judged.end()};
}

void ClusterNode::OnStore(const KvEvent& event) {
  const MutexLock lock(mu_);
  membership_->Told(event, clock_.Now());
  LookAtMembership();
}

void ClusterNode::LookAtMembership() {
  const MemberNews news = TellNews(*membership_, *core_, clock_.Now());
  const bool is_news = news.state;
  if (news.begins) Say(SayNewCluster(options_.cluster, membership_->other_clusters()));
  const std::string& problem = membership_->problem();
  switch (membership_->state()) {
    case MemberState::kMember:
      if (is_news) Say(fmt::format("etcd lists this node as {}", options_.name));
      break;
    case MemberState::kWithoutStore:
      if (is_news) Say(fmt::format("etcd is away, so nobody plans: {}", problem));
      break;
    case MemberState::kUnknown:
    case MemberState::kNameTaken:
    case MemberState::kOtherModel:
    case MemberState::kDistrusted:
      Fail(problem);
      break;
    case MemberState::kJoining:
    case MemberState::kLeft:
      break;
  }
  Perform();
}

void ClusterNode::Fail(const std::string& why) {
  if (std::exchange(failed_, true) || !options_.fail) return;
  options_.fail(Error(Code::kFailedPrecondition, "{}", why));
}

// Without the lock: a placer takes seconds with hundreds of nodes.
void ClusterNode::ChooseMain() {
  for (;;) {
    std::optional<PlanJob> job;
    {
      const MutexLock lock(mu_);
      while (!to_choose_ && !leaving_since_) choose_.Wait(mu_);
      if (leaving_since_) return;
      job = std::exchange(to_choose_, std::nullopt);
    }
    Result<PlanChoice> choice = ChoosePlan(*job);
    const MutexLock lock(mu_);
    core_->OnPlanChosen(std::move(choice), clock_.Now());
    Perform();
  }
}

void ClusterNode::Say(const std::string& line) {
  if (options_.say) options_.say(line);
  const MutexLock lock(said_mu_);
  said_.push_back({.at = clock_.Now(), .text = line});
  if (said_.size() > kMostEvents) said_.pop_front();
}

void ClusterNode::Carry(HoldingStep step) {
  if (const auto* release = std::get_if<ReleaseStep>(&step)) {
    return between_([this, step = *release] { ReleaseOnEngine(step); });
  }
  auto& hold = std::get<HoldStep>(step);
  if (fetcher_.Begin(hold, calls_.Links(), disk_bytes_per_second_)) {
    fetching_ = std::move(hold);
    return changed_.NotifyAll();
  }
  between_([this, step = std::move(hold)] { HoldOnEngine(step, {}); });
}

void ClusterNode::GoOnFetching(Nanos now) {
  std::optional<FetchedExperts> fetched = fetcher_.OnTime(now);
  if (!fetched) return;
  between_([this, step = *std::exchange(fetching_, std::nullopt),
            experts = std::make_shared<const FetchedExperts>(*std::move(fetched))] {
    HoldOnEngine(step, *experts);
  });
}

// An expert that a peer's call is computed with cannot go yet: once more, later.
void ClusterNode::ReleaseOnEngine(const ReleaseStep& step) {
  if (engine_.ReleaseExpert(step.id)) return Held(OkStatus());
  const MutexLock lock(mu_);
  to_release_.push_back(step);
}

// What was fetched is there at once; the others are read while passes go on.
void ClusterNode::HoldOnEngine(const HoldStep& step, const FetchedExperts& fetched) {
  if (engine_.plan().memory.all_resident)
    return Held(engine_.HoldExperts(step.layer, step.experts));
  std::vector<std::uint32_t> here, to_read;
  for (const std::uint32_t expert : step.experts) {
    (fetched.contains({step.layer, expert}) ? here : to_read).push_back(expert);
  }
  const Status held = here.empty() ? OkStatus() : engine_.HoldExperts(step.layer, here, fetched);
  if (!held.ok() || to_read.empty()) return Held(held);
  engine_.BeginHoldingExperts(step.layer, to_read);
  const MutexLock lock(mu_);
  reading_ = to_read.size();
}

void ClusterNode::GoOnHoldingOnEngine() {
  const std::optional<Status> held = engine_.GoOnHoldingExperts();
  {
    const MutexLock lock(mu_);
    looking_ = false;
    if (!held) return;
    const std::size_t read = std::exchange(reading_, 0);
    if (held->ok()) experts_read_ += read;
  }
  Held(*held);
}

void ClusterNode::Held(const Status& how) {
  if (!how.ok()) Say(how.message());
  const MutexLock lock(mu_);
  core_->OnHeld(HeldNow(), how.ok());
  Perform();
}

// In order, so that others need not wait for its lease to end.
bool ClusterNode::HasLeft() const {
  if (!leaving_since_) return false;
  return membership_ == nullptr || membership_->state() == MemberState::kLeft ||
         clock_.Now() - *leaving_since_ > kLeaveWithin;
}

void ClusterNode::Main() {
  Nanos count_at = clock_.Now();
  const MutexLock lock(mu_);
  while (!HasLeft()) {
    const Nanos now = clock_.Now();
    if (membership_ != nullptr && membership_->next_tick() <= now) {
      membership_->Tick(now);
      LookAtMembership();
    }
    if (leaving_since_) {
      changed_.WaitFor(mu_, kLook);
      continue;
    }
    for (const ReleaseStep& step : std::exchange(to_release_, {})) {
      between_([this, step] { ReleaseOnEngine(step); });
    }
    if (reading_ > 0 && !std::exchange(looking_, true)) {
      between_([this] { GoOnHoldingOnEngine(); });
    }
    GoOnFetching(now);
    if (now >= count_at) {
      count_at = now + kCountEvery;
      core_->OnActivity(calls_.TakeActivity(), now);
      core_->OnMeasured(Measured());
      for (const std::string& remark : calls_.TakeRemarks()) Say(remark);
      between_([this] { MeasureOnEngine(); });
    }
    if (forgetting_) {
      between_([this] { ForgetOnEngine(); });
    }
    if (checking_ == 0) {
      for (SpotCheck& check : calls_.TakeChecks()) {
        ++checking_;
        between_([this, check = std::move(check)] { CheckOnEngine(check); });
      }
    }
    if (const auto opinion = second_opinion_.TakeDone(now)) TakeOpinion(*opinion);
    core_->OnTime(now);
    Perform();
    const Nanos next = fetcher_.NextTime().value_or(now + kLook);
    changed_.WaitFor(mu_, std::clamp<Nanos>(next - clock_.Now(), kShortestLook, kLook));
  }
}

void ClusterNode::Drain() {
  const MutexLock lock(mu_);
  core_->Drain();
  Perform();
}

Status ClusterNode::PlanNow() {
  const MutexLock lock(mu_);
  if (core_->PlanNow(clock_.Now())) return OkStatus();
  const std::string leader = core_->LeaderName();
  return Error(Code::kFailedPrecondition, "{} leads, not {}", leader.empty() ? "nobody" : leader,
               options_.name);
}

}  // namespace troupe
