#include "cluster/transport/link.h"

#include <chrono>
#include <optional>
#include <utility>

namespace troupe {
namespace {

Nanos InNanos(std::chrono::milliseconds time) { return std::chrono::nanoseconds(time).count(); }

Status ClosedHere() { return Status(Code::kCancelled, "closed by this node"); }

}  // namespace

Link::Link(LinkContext& context, LinkId id, std::string address)
    : context_(context),
      id_(id),
      address_(std::move(address)),
      pause_(InNanos(context.options.first_pause), InNanos(context.options.longest_pause)),
      queue_(context.options.most_unsent, context.unsent) {}

Status Link::Send(Frame frame) {
  std::optional<Frame> now;
  std::shared_ptr<FrameStream> stream;
  {
    const MutexLock lock(mu_);
    if (!open_ || broken_) return Error(Code::kUnavailable, "the link is not open");
    TROUPE_ASSIGN_OR_RETURN(now, queue_.Push(std::move(frame)));
    stream = stream_;
  }
  if (now) Write(*stream, std::move(*now));
  return OkStatus();
}

// The peer hangs up when it has read the last frame: then nothing of it is lost.
void Link::Break(Frame last) {
  std::optional<Frame> now;
  std::shared_ptr<FrameStream> stream;
  bool waits = false;
  {
    const MutexLock lock(mu_);
    if (!open_ || std::exchange(broken_, true)) return;
    stream = stream_;
    if (!last.empty()) {
      if (auto pushed = queue_.Push(std::move(last)); pushed.ok()) now = *std::move(pushed);
    }
    waits = queue_.bytes() > 0;
  }
  if (!waits) return stream->End(ClosedHere());
  if (now) Write(*stream, std::move(*now));
  context_.streams->Post([this, self = shared_from_this(), late = std::weak_ptr(stream)] {
    context_.streams->CallAt(clock_.Now() + InNanos(context_.options.connect_time), [late] {
      if (const auto open = late.lock()) open->End(ClosedHere());
    });
  });
}

void Link::Reset() {
  std::shared_ptr<FrameStream> stream;
  {
    const MutexLock lock(mu_);
    if (!open_) return;
    stream = stream_;
  }
  stream->End(Error(Code::kUnavailable, "given up by this node"));
}

void Link::Close() {
  std::shared_ptr<FrameStream> stream;
  {
    const MutexLock lock(mu_);
    closed_ = true;
    open_ = false;
    stream = stream_;
  }
  if (stream) stream->End(ClosedHere());
}

void Link::Dial() {
  {
    const MutexLock lock(mu_);
    if (closed_) return;
  }
  const auto stream = context_.streams->Connect(address_, shared_from_this());
  SetStream(stream);
  context_.streams->CallAt(clock_.Now() + InNanos(context_.options.connect_time),
                           [weak = weak_from_this(), attempt = std::weak_ptr(stream)] {
                             const auto link = weak.lock();
                             const auto late = attempt.lock();
                             if (link && late) link->GiveUpUnlessOpen(*late);
                           });
}

void Link::GiveUpUnlessOpen(FrameStream& attempt) {
  if (told_) return;
  attempt.End(
      Error(Code::kUnavailable, "no answer within {} ms", context_.options.connect_time.count()));
}

void Link::SetStream(std::shared_ptr<FrameStream> stream) {
  bool closed = false;
  {
    const MutexLock lock(mu_);
    stream_ = stream;
    closed = closed_;
  }
  if (closed) stream->End(ClosedHere());
}

void Link::OnOpened(const PeerIdentity& peer) {
  {
    const MutexLock lock(mu_);
    if (closed_) return;
    open_ = true;
  }
  told_ = true;
  opened_at_ = clock_.Now();
  peer_ = peer.address;
  ++context_.counters.opened;
  PeerIdentity who = peer;
  who.dialled = !address_.empty();
  context_.events->OnOpened(id_, who);
}

void Link::OnFrame(std::span<const std::byte> frame) {
  {
    const MutexLock lock(mu_);
    if (!open_ || broken_) return;
  }
  ++context_.counters.frames_received;
  context_.counters.bytes_received += frame.size();
  received_ += frame.size();
  context_.events->OnFrame(id_, frame);
}

void Link::OnWritten() {
  std::optional<Frame> next;
  std::shared_ptr<FrameStream> stream;
  {
    const MutexLock lock(mu_);
    if (!open_) return;
    next = queue_.Written();
    stream = stream_;
  }
  if (next) Write(*stream, std::move(*next));
}

void Link::OnEnded(const Status& why) {
  bool closed = false, broken = false;
  {
    const MutexLock lock(mu_);
    open_ = false;
    broken = std::exchange(broken_, false);
    stream_.reset();
    queue_.Clear();
    closed = closed_;
  }
  const bool was_open = std::exchange(told_, false);
  const Status what = Status(why).WithContext(was_open ? peer_ : address_);
  if (was_open) {
    if (why.code() != Code::kCancelled && !broken) ++context_.counters.lost;
    context_.events->OnClosed(id_, broken ? ClosedHere().WithContext(peer_) : what);
  } else if (!closed && !address_.empty()) {
    ++context_.counters.unreachable;
    context_.events->OnUnreachable(id_, what);
  }
  if (address_.empty()) return context_.forget(id_);
  DialLater(broken ? InNanos(context_.options.refused_pause)
                   : pause_.After(was_open ? clock_.Now() - opened_at_ : 0));
}

void Link::DialLater(Nanos pause) {
  context_.streams->CallAt(clock_.Now() + pause, [weak = weak_from_this()] {
    if (const auto link = weak.lock()) link->Dial();
  });
}

void Link::Write(FrameStream& stream, Frame frame) {
  ++context_.counters.frames_sent;
  context_.counters.bytes_sent += frame.size();
  sent_ += frame.size();
  stream.Write(std::move(frame));
}

}  // namespace troupe
