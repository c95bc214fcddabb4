#include "cluster/transport/peer_links.h"

#include <string>
#include <unordered_map>
#include <utility>

#include "base/mutex.h"
#include "cluster/transport/frame_streams.h"
#include "cluster/transport/grpc_streams.h"
#include "cluster/transport/link.h"

namespace troupe {

class PeerLinks::Impl {
 public:
  Impl(const TransportOptions& options, std::unique_ptr<FrameStreams> streams)
      : context_{.options = options} {
    context_.streams = streams.get();
    context_.forget = [this](LinkId id) {
      Take(id);
      --accepted_;
    };
    streams_ = std::move(streams);
  }

  void Start(LinkEvents& events) {
    TROUPE_CHECK(context_.events == nullptr);
    context_.events = &events;
    streams_->Start([this](const auto& stream) { return Accept(stream); });
  }

  Result<LinkId> Dial(std::string_view text) {
    TROUPE_CHECK(context_.events != nullptr);
    TROUPE_ASSIGN_OR_RETURN(const PeerAddress address, ParsePeerAddress(text));
    TROUPE_RETURN_IF_ERROR(CheckMayTalkTo(address, context_.options));
    const auto [id, link] = Add(address.ToString());
    streams_->Post([link = link] { link->Dial(); });
    return id;
  }

  Status Send(LinkId id, Frame frame) {
    if (frame.size() > context_.options.most_frame) {
      return InvalidArgument("a frame of {} bytes, at most {} allowed", frame.size(),
                             context_.options.most_frame);
    }
    const auto link = Find(id);
    if (!link) return Error(Code::kUnavailable, "there is no such link");
    return link->Send(std::move(frame));
  }

  void Break(LinkId id, Frame last) {
    if (const auto link = Find(id)) link->Break(std::move(last));
  }

  void Reset(LinkId id) {
    if (const auto link = Find(id)) link->Reset();
  }

  void Close(LinkId id) {
    if (const auto link = Take(id)) link->Close();
  }

  std::uint16_t port() const { return streams_->port(); }

  LinkTraffic TrafficOf(LinkId id) const {
    const auto link = Find(id);
    return link ? link->traffic() : LinkTraffic();
  }

  LinkCounters counters() const {
    const AtomicLinkCounters& now = context_.counters;
    return {.frames_sent = now.frames_sent,
            .bytes_sent = now.bytes_sent,
            .frames_received = now.frames_received,
            .bytes_received = now.bytes_received,
            .opened = now.opened,
            .lost = now.lost,
            .unreachable = now.unreachable,
            .refused = now.refused};
  }

 private:
  std::shared_ptr<StreamEvents> Accept(const std::shared_ptr<FrameStream>& stream) {
    if (accepted_ == context_.options.most_accepted) {
      ++context_.counters.refused;
      return nullptr;
    }
    ++accepted_;
    const auto [id, link] = Add("");
    link->SetStream(stream);
    return link;
  }

  std::pair<LinkId, std::shared_ptr<Link>> Add(std::string address) {
    const MutexLock lock(mu_);
    const LinkId id = next_id_++;
    return {id, links_[id] = std::make_shared<Link>(context_, id, std::move(address))};
  }

  std::shared_ptr<Link> Find(LinkId id) const {
    const MutexLock lock(mu_);
    const auto found = links_.find(id);
    return found == links_.end() ? nullptr : found->second;
  }

  std::shared_ptr<Link> Take(LinkId id) {
    const MutexLock lock(mu_);
    auto node = links_.extract(id);
    return node ? std::move(node.mapped()) : nullptr;
  }

  LinkContext context_;
  std::size_t accepted_ = 0;  // the thread's
  mutable Mutex mu_;
  LinkId next_id_ TROUPE_GUARDED_BY(mu_) = 1;
  std::unordered_map<LinkId, std::shared_ptr<Link>> links_ TROUPE_GUARDED_BY(mu_);
  std::unique_ptr<FrameStreams> streams_;  // goes first: its thread calls all of the above
};

Result<std::unique_ptr<PeerLinks>> PeerLinks::Listen(const TransportOptions& options) {
  TROUPE_RETURN_IF_ERROR(CheckTransportOptions(options));
  TROUPE_ASSIGN_OR_RETURN(std::unique_ptr<FrameStreams> streams, ListenWithGrpc(options));
  return std::unique_ptr<PeerLinks>(
      new PeerLinks(std::make_unique<Impl>(options, std::move(streams))));
}

PeerLinks::PeerLinks(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}
PeerLinks::~PeerLinks() = default;

void PeerLinks::Start(LinkEvents& events) { impl_->Start(events); }
Result<LinkId> PeerLinks::Dial(std::string_view address) { return impl_->Dial(address); }
Status PeerLinks::Send(LinkId link, Frame frame) { return impl_->Send(link, std::move(frame)); }
void PeerLinks::Break(LinkId link, Frame last) { impl_->Break(link, std::move(last)); }
void PeerLinks::Reset(LinkId link) { impl_->Reset(link); }
void PeerLinks::Close(LinkId link) { impl_->Close(link); }
std::uint16_t PeerLinks::port() const { return impl_->port(); }
LinkCounters PeerLinks::counters() const { return impl_->counters(); }
LinkTraffic PeerLinks::TrafficOf(LinkId link) const { return impl_->TrafficOf(link); }

}  // namespace troupe
