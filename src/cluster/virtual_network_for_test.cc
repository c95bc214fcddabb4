#include "cluster/virtual_network_for_test.h"

#include <algorithm>

namespace troupe {

VirtualNetwork::VirtualNetwork(VirtualTime& time, Rng& rng, Do call,
                               std::vector<std::string> addresses)
    : time_(time),
      rng_(rng),
      do_(std::move(call)),
      addresses_(std::move(addresses)),
      hosts_(addresses_.size()) {}

std::vector<VirtualNetwork::End> VirtualNetwork::EndsAt(std::size_t node) const {
  std::vector<End> ends;
  for (const auto& [link, end] : ends_) {
    if (end.own().node == node) ends.push_back(end);
  }
  return ends;
}

void VirtualNetwork::Kill(std::size_t node, bool silently) {
  std::erase_if(dialled_, [node](const auto& one) { return one.second.node == node; });
  for (const End& end : EndsAt(node)) {
    end.own().open = false;
    ends_.erase(end.own().link);
    if (!silently) {
      CarryEnd(end);
    } else {
      time_.After(Patience(), [this, other = end.turned()] { FinishWithoutLife(other); });
    }
  }
  hosts_[node].events = nullptr;
}

void VirtualNetwork::Hang(std::size_t node) {
  const std::uint64_t hangs = ++hosts_[node].hangs;
  for (const End& end : EndsAt(node)) {
    time_.After(Patience(), [this, node, hangs, other = end.turned()] {
      if (hosts_[node].hangs == hangs) FinishWithoutLife(other);
    });
  }
}

// Its own signs of life were due long ago.
void VirtualNetwork::GoOn(std::size_t node) {
  ++hosts_[node].hangs;
  for (const End& end : EndsAt(node)) {
    if (rng_.Below(4) == 0) FinishWithoutLife(end);
  }
}

void VirtualNetwork::SetStopped(std::size_t from, std::size_t to, bool stopped) {
  Path& path = PathOf(from, to);
  if (path.stopped == stopped) return;
  path.stopped = stopped;
  const std::uint64_t stops = ++path.stops;
  for (const End& end : EndsAt(from)) {
    if (end.other().node != to) continue;
    if (!stopped) {
      for (Frame& frame : std::exchange(end.own().stalls, {})) Carry(end, std::move(frame));
      if (end.own().ends) CarryEnd(end);
      continue;
    }
    for (const End& one : {end, end.turned()}) {
      time_.After(Patience(), [this, from, to, stops, one] {
        if (PathOf(from, to).stops == stops) FinishWithoutLife(one);
      });
    }
  }
}

void VirtualNetwork::SetBytesPerSecond(std::size_t from, std::size_t to, double speed) {
  PathOf(from, to).bytes_per_second = speed;
}

void VirtualNetwork::Mend() {
  for (std::size_t from = 0; from < hosts_.size(); ++from) {
    for (std::size_t to = 0; to < hosts_.size(); ++to) {
      SetStopped(from, to, false);
      PathOf(from, to).bytes_per_second = 1e8;
    }
  }
  most_unsent_ = kUsualUnsent;
}

void VirtualNetwork::CutAny() {
  if (ends_.empty()) return;
  auto at = ends_.begin();
  std::advance(at, static_cast<std::ptrdiff_t>(rng_.Below(ends_.size())));
  Reset(at->first);
}

Result<LinkId> VirtualNetwork::Dial(std::size_t node, std::string_view address) {
  const auto found = std::ranges::find(addresses_, address);
  if (found == addresses_.end()) return InvalidArgument("{}: no such address", address);
  const LinkId link = ++last_link_;
  dialled_.emplace(link, Dialled{.node = node,
                                 .to = static_cast<std::size_t>(found - addresses_.begin()),
                                 .address = std::string(address)});
  do_(node, 0, [this, link] { Try(link); });
  return link;
}

void VirtualNetwork::Try(LinkId link) {
  const auto found = dialled_.find(link);
  if (found == dialled_.end()) return;
  const Dialled& dial = found->second;
  const bool there = hosts_[dial.to].events != nullptr && dial.node != dial.to;
  const bool passes = !PathOf(dial.node, dial.to).stopped && !PathOf(dial.to, dial.node).stopped;
  if (there && passes && !Hangs(dial.to)) return Open(link);
  ++counters_.unreachable;
  const Nanos takes = passes && !there ? Delay() : 5'000 * kMs;  // refused, or no answer
  do_(dial.node, takes, [this, link] {
    const auto still = dialled_.find(link);
    if (still == dialled_.end()) return;
    TryLater(link, still->second.pause.After(0));
    hosts_[still->second.node].events->OnUnreachable(
        link, Error(Code::kUnavailable, "{}: no link", still->second.address));
  });
}

void VirtualNetwork::TryLater(LinkId link, Nanos pause) {
  do_(dialled_.at(link).node, pause, [this, link] { Try(link); });
}

void VirtualNetwork::Open(LinkId link) {
  ++counters_.opened;
  Dialled& dial = dialled_.at(link);
  dial.opened = time_.now();
  const auto connection = std::make_shared<Connection>();
  connection->sides[0] = {.node = dial.node, .link = link, .open = true};
  connection->sides[1] = {.node = dial.to, .link = ++last_link_, .open = true};
  for (const int side : {0, 1}) {
    const End end{connection, side};
    ends_[end.own().link] = end;
    // No frame comes before the link.
    end.other().arrives = time_.now() + Delay();
    do_(end.own().node, end.other().arrives - time_.now(), [this, end] {
      if (!end.own().open) return;
      end.own().told = true;
      hosts_[end.own().node].events->OnOpened(
          end.own().link, {.address = addresses_[end.other().node], .names = {}});
    });
  }
}

Status VirtualNetwork::Send(std::size_t, LinkId link, Frame frame) {
  const auto found = ends_.find(link);
  if (found == ends_.end() || !found->second.own().open || found->second.own().broken) {
    return Error(Code::kUnavailable, "the link is not open");
  }
  Side& own = found->second.own();
  if (own.unsent + frame.size() > most_unsent_) {
    ++counters_.full;
    return Error(Code::kResourceExhausted, "too much waits to be sent");
  }
  own.unsent += frame.size();
  Carry(End(found->second), std::move(frame));
  return OkStatus();
}

void VirtualNetwork::Carry(const End& from, Frame frame) {
  Side& own = from.own();
  Path& path = PathOf(own.node, from.other().node);
  if (path.stopped) {
    own.stalls.push_back(std::move(frame));
    return;
  }
  const auto takes =
      static_cast<Nanos>(static_cast<double>(frame.size()) / path.bytes_per_second * 1e9);
  path.free_at = std::max(path.free_at, time_.now()) + takes;
  own.arrives = std::max(own.arrives + 1, path.free_at + Delay());
  const Nanos wait = own.arrives - time_.now();
  time_.After(wait, [from, bytes = frame.size()] { from.own().unsent -= bytes; });
  do_(from.other().node, wait, [this, from, frame = std::move(frame)] {
    const Side& to = from.other();
    if (to.open && !to.broken) hosts_[to.node].events->OnFrame(to.link, frame);
  });
}

void VirtualNetwork::CarryEnd(const End& from) {
  Side& own = from.own();
  if (PathOf(own.node, from.other().node).stopped) {
    own.ends = true;
    time_.After(Patience(), [this, other = from.turned()] { FinishWithoutLife(other); });
    return;
  }
  own.arrives = std::max(own.arrives + 1, time_.now() + Delay());
  time_.After(own.arrives - time_.now(), [this, other = from.turned()] {
    Finish(other, Error(Code::kUnavailable, "the other end has closed it"), false);
  });
}

void VirtualNetwork::FinishWithoutLife(const End& end) {
  if (!end.own().open) return;
  ++counters_.silent;
  Finish(end, Error(Code::kUnavailable, "no sign of life"), true);
}

// The process hears of it in its order, however long it hangs.
void VirtualNetwork::Finish(const End& end, const Status& why, bool tell) {
  Side& own = end.own();
  if (!own.open || hosts_[own.node].events == nullptr) return;
  if (tell) CarryEnd(end);
  do_(own.node, 0, [this, end, why] {
    Side& side = end.own();
    if (!std::exchange(side.open, false)) return;
    ends_.erase(side.link);
    if (const auto dial = dialled_.find(side.link); dial != dialled_.end()) {
      TryLater(side.link, side.broken
                              ? 3'000 * kMs
                              : dial->second.pause.After(time_.now() - dial->second.opened));
    }
    if (side.told) hosts_[side.node].events->OnClosed(side.link, why);
  });
}

void VirtualNetwork::Break(std::size_t, LinkId link, Frame last) {
  const auto found = ends_.find(link);
  if (found == ends_.end() || found->second.own().broken) return;
  const End end = found->second;
  ++counters_.refused;
  end.own().unsent += last.size();
  if (!last.empty()) Carry(end, std::move(last));
  end.own().broken = true;
  Finish(end, Status(Code::kCancelled, "closed by this node"), true);
}

void VirtualNetwork::Reset(LinkId link) {
  const auto found = ends_.find(link);
  if (found == ends_.end()) return;
  Finish(End(found->second), Error(Code::kUnavailable, "given up by this node"), true);
}

void VirtualNetwork::Close(LinkId link) {
  dialled_.erase(link);
  const auto found = ends_.find(link);
  if (found == ends_.end()) return;
  Finish(End(found->second), Status(Code::kCancelled, "closed by this node"), true);
}

}  // namespace troupe
