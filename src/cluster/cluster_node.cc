#include "cluster/cluster_node.h"

#include <algorithm>
#include <chrono>
#include <ctime>
#include <random>
#include <system_error>
#include <utility>

#include "cluster/face/certificate_expiry.h"
#include "cluster/face/node_buffers.h"
#include "cluster/whole_expert.h"
#include "gguf/reader.h"
#include "runtime/arithmetic_digest.h"
#include "store/model_fingerprint.h"

namespace troupe {
namespace {

constexpr Nanos kLook = 20'000'000;  // how often what is due is looked at
constexpr Nanos kShortestLook = 100'000;
constexpr std::uint32_t kSlotsForTokens = 2;  // times the experts of a token are kept for a cache
constexpr std::size_t kMostEvents = 200;      // that are remembered

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
      calls_(std::move(shape), directory_, Sender(), clock_,
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
          }) {}

SendFrame ClusterNode::Sender() {
  return [this](LinkId link, std::vector<std::byte> frame) {
    return links_->Send(link, std::move(frame));
  };
}

Result<std::unique_ptr<ClusterNode>> ClusterNode::Open(Engine& engine, ClusterOptions options) {
  if (engine.config().encoder) {
    return Error(Code::kUnimplemented,
                 "{}: an encoder-decoder, which no cluster serves: plans are for layers with "
                 "experts one behind the other",
                 engine.path());
  }
  const CallShape shape = ShapeOf(engine);
  if (!TakesWidth(engine.offload_options().peer_answers, shape.width)) {
    return InvalidArgument("peers cannot answer in {}: rows of {} found, a multiple of {} expected",
                           ToString(engine.offload_options().peer_answers), shape.width,
                           kGroupCols);
  }
  const NodeBuffers buffers = BuffersFor(engine.config());
  options.transport.most_frame = buffers.frame;
  options.transport.most_unsent = buffers.unsent;
  options.transport.most_buffered = buffers.received;
  std::unique_ptr<ClusterNode> node(new ClusterNode(engine, std::move(options), shape));
  TROUPE_RETURN_IF_ERROR(node->OpenParts(shape));
  engine.set_peers(node->calls_);
  return node;
}

Status ClusterNode::OpenParts(const CallShape& shape) {
  TROUPE_ASSIGN_OR_RETURN(const PeerHello hello, HelloOf(engine_, options_, shape));
  TROUPE_ASSIGN_OR_RETURN(links_, PeerLinks::Listen(options_.transport));
  TROUPE_RETURN_IF_ERROR(LookAtCertificate());
  const ModelConfig& config = engine_.config();
  TROUPE_ASSIGN_OR_RETURN(std::unique_ptr<ExpertHost> computes,
                          ExpertHost::Create(engine_.held(), config.moe.expert_ff,
                                             options_.peer_threads, PeerHost::kLowerPriority));
  TROUPE_ASSIGN_OR_RETURN(
      host_, PeerHost::Create(shape, engine_.held(), std::move(computes), Sender(), clock_,
                              {.most_bytes = BuffersFor(config).waiting}));
  const MutexLock lock(mu_);
  const Nanos now = clock_.Now();
  parts_ = std::make_unique<NodeParts>(
      NodeSelf{.hello = hello,
               .first_layer = config.moe.leading_dense,
               .experts_per_token = config.moe.routing.top_k,
               .expert_bytes = LargestExpert(engine_),
               .experts_travel = ExpertsTravel(engine_),
               .most_held = MostHeld(engine_),
               .held = HeldFlags(engine_.held())},
      options_.node,
      NodeParts::Ports{.links = *links_,
                       .engine = *this,
                       .directory = directory_,
                       .calls = calls_,
                       .host = *host_,
                       .held = engine_.held(),
                       .layouts = engine_.expert_layouts(),
                       .checksum_of = [this](ExpertId id) { return engine_.ChecksumOf(id); },
                       .say = [this](const std::string& line) { Say(line); },
                       .fail = options_.fail,
                       .log_trouble = options_.log_trouble},
      now);
  if (!options_.etcd) return OkStatus();
  TROUPE_ASSIGN_OR_RETURN(
      etcd_, EtcdStore::Open(*options_.etcd, [this](const KvEvent& event) { OnStore(event); }));
  const MembershipOptions member{.cluster = options_.cluster,
                                 .node = options_.name,
                                 .address = options_.address,
                                 .model = ModelText(hello),
                                 .start = fmt::format("{:016x}", hello.start_id),
                                 .new_cluster = options_.new_cluster,
                                 .ttl = options_.lease};
  TROUPE_RETURN_IF_ERROR(Validate(member));
  parts_->Join(member, *etcd_, now);
  return OkStatus();
}

Status ClusterNode::LookAtCertificate() {
  const std::string& certificate = options_.transport.tls.certificate;
  if (certificate.empty()) return OkStatus();
  TROUPE_ASSIGN_OR_RETURN(certificate_expires_, ExpiryOfCertificate(certificate));
  TROUPE_ASSIGN_OR_RETURN(certificate_remark_,
                          RemarkOnExpiry(certificate, certificate_expires_, std::time(nullptr)));
  return OkStatus();
}

Status ClusterNode::Begin(BetweenPasses between) {
  between_ = std::move(between);
  links_->Start(*this);
  {
    const MutexLock lock(mu_);
    SayWhereItListens();
    SayWhatIsNotProtected();
    for (const std::string& remark : {options_.remark, certificate_remark_}) {
      if (!remark.empty()) Say(remark);
    }
    TROUPE_RETURN_IF_ERROR(parts_->Begin(clock_.Now()));
  }
  try {
    thread_ = std::thread([this] { Main(); });
    chooser_ = std::thread([this] { ChooseMain(); });
  } catch (const std::system_error& error) {
    return Error(Code::kResourceExhausted, "no thread for the cluster: {}", error.what());
  }
  return OkStatus();
}

void ClusterNode::SayWhereItListens() {
  if (options_.listen.empty()) return;
  const PeerAddress listens{.host = options_.transport.host, .port = links_->port()};
  Say(fmt::format("peers reach this node at {}, and it listens at {}", options_.address,
                  listens.ToString()));
}

void ClusterNode::SayWhatIsNotProtected() {
  if (!ExpertsTravel(engine_)) {
    Say("the model is not packed (`troupe pack`): experts come from the own disk alone, and no "
        "hash "
        "checks them");
  }
  if (!options_.etcd || options_.etcd->tls.enabled()) return;
  for (const std::string& endpoint : options_.etcd->endpoints) {
    const Result<PeerAddress> address = ParsePeerAddress(endpoint);
    if (!address.ok() || address->IsLoopback()) continue;
    return Say(
        fmt::format("etcd at {} is asked in plain text: whoever can write to it says who is "
                    "in the cluster and who leads; the --etcd-... options ask it by TLS",
                    endpoint));
  }
}

ClusterNode::~ClusterNode() {
  {
    const MutexLock lock(mu_);
    leaving_ = true;
    if (parts_ != nullptr) parts_->Leave(clock_.Now());
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

void ClusterNode::OnStore(const KvEvent& event) {
  const MutexLock lock(mu_);
  parts_->OnStore(event, clock_.Now());
}

void ClusterNode::OnOpened(LinkId link, const PeerIdentity& peer) {
  const MutexLock lock(mu_);
  if (!stopping_) parts_->OnOpened(link, peer, clock_.Now());
}

void ClusterNode::OnClosed(LinkId link, const Status& why) {
  const MutexLock lock(mu_);
  if (!stopping_) parts_->OnClosed(link, why, clock_.Now());
}

void ClusterNode::OnUnreachable(LinkId link, const Status& why) {
  const MutexLock lock(mu_);
  if (!stopping_) parts_->OnUnreachable(link, why, clock_.Now());
}

void ClusterNode::OnFrame(LinkId link, std::span<const std::byte> frame) {
  // Where numbers lie as they must: gRPC's memory begins anywhere.
  std::vector<std::byte> own(frame.begin(), frame.end());
  const MutexLock lock(mu_);
  if (!stopping_) parts_->OnFrame(link, std::move(own), clock_.Now());
}

void ClusterNode::Say(const std::string& line) {
  if (options_.say) options_.say(line);
  const MutexLock lock(said_mu_);
  said_.push_back({.at = clock_.Now(), .text = line});
  if (said_.size() > kMostEvents) said_.pop_front();
}

void ClusterNode::Main() {
  const MutexLock lock(mu_);
  while (!parts_->HasLeft(clock_.Now())) {
    if (!leaving_ && reading_ > 0 && !std::exchange(looking_, true)) {
      between_([this] { GoOnHoldingOnEngine(); });
    }
    const Nanos now = clock_.Now();
    parts_->OnTime(now);
    const Nanos next = parts_->NextTime().value_or(now + kLook);
    changed_.WaitFor(mu_, std::clamp<Nanos>(next - clock_.Now(), kShortestLook, kLook));
  }
}

Result<std::string> ClusterNode::Drain() {
  const MutexLock lock(mu_);
  return parts_->Drain(clock_.Now());
}

Result<std::string> ClusterNode::PlanNow() {
  const MutexLock lock(mu_);
  return parts_->PlanNow(clock_.Now());
}

Status ClusterNode::Readmit() {
  const MutexLock lock(mu_);
  return parts_->Readmit(clock_.Now()) > 0
             ? OkStatus()
             : Error(Code::kFailedPrecondition, "{} has thrown nobody out, and nobody is accused",
                     options_.name);
}

}  // namespace troupe
