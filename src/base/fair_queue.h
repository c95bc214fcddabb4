// Calls of several peers that wait for one host: one of each peer in turn, so that a busy peer
// slows down itself and not the others; and no more than fit. A call has a size() in bytes. Calls
// may be charged by what they cost: then the turn is that of whoever was charged least. Or whoever
// uses it ranks the peers, as by what they hold. Pure: whoever uses it has the lock.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <map>
#include <optional>
#include <utility>

namespace troupe {

template <typename Call>
class FairQueue {
 public:
  // Calls of a peer, and bytes of all of them.
  FairQueue(std::size_t most_each, std::size_t most_bytes)
      : most_each_(most_each), most_bytes_(most_bytes) {}

  // False if the peer has as many waiting as it may, or there is no room.
  bool Add(std::uint64_t peer, Call call) {
    Line& line = lines_[peer];
    if (line.calls.size() >= most_each_ || bytes_ + call.size() > most_bytes_) return false;
    // Who wanted nothing for long has saved up nothing.
    if (line.calls.empty()) line.charged = std::max(line.charged, charged_);
    bytes_ += call.size();
    line.calls.push_back(std::move(call));
    ++size_;
    return true;
  }

  // The oldest call of the peer whose turn it is: of those charged least, the next one.
  std::optional<Call> Next() {
    return Next([](std::uint64_t, const Call&) { return true; });
  }
  // The same, of peers whose oldest call may come now.
  template <typename May>
  std::optional<Call> Next(const May& may) {
    return Next(may, [](std::uint64_t) { return std::size_t{0}; });
  }
  // The same, of those of the lowest rank; rank is asked once about each that may come.
  template <typename May, typename Rank>
  std::optional<Call> Next(const May& may, const Rank& rank) {
    if (size_ == 0) return std::nullopt;
    auto next = lines_.end();
    std::pair<std::size_t, std::uint64_t> lowest;  // rank, and what is charged
    const auto look = [&](auto from, auto to) {
      for (auto one = from; one != to; ++one) {
        if (one->second.calls.empty() || !may(one->first, one->second.calls.front())) continue;
        const std::pair<std::size_t, std::uint64_t> found(rank(one->first), one->second.charged);
        if (next != lines_.end() && found >= lowest) continue;
        next = one;
        lowest = found;
      }
    };
    look(lines_.upper_bound(last_), lines_.end());
    look(lines_.begin(), lines_.upper_bound(last_));
    if (next == lines_.end()) return std::nullopt;
    last_ = next->first;
    charged_ = next->second.charged;
    --size_;
    Call call = std::move(next->second.calls.front());
    next->second.calls.pop_front();
    bytes_ -= call.size();
    return call;
  }

  // Calls visit with those that would come before that call of the peer, or before a new one if it
  // has no such call; if nobody else came and turns were not charged. Those are the peer's own
  // before it, and of each other peer one more than these.
  template <typename Is, typename Visit>
  void VisitBefore(std::uint64_t peer, const Is& is, const Visit& visit) const {
    VisitBefore(peer, is, visit, [](std::uint64_t) { return std::size_t{0}; });
  }
  // The same where a peer's rank is how many it has of those that came, and stays so until others
  // come: of a peer that has fewer than this one more come before, of one that has more fewer.
  template <typename Is, typename Visit, typename Rank>
  void VisitBefore(std::uint64_t peer, const Is& is, const Visit& visit, const Rank& rank) const {
    std::size_t own = 0;
    if (const auto found = lines_.find(peer); found != lines_.end()) {
      const std::deque<Call>& calls = found->second.calls;
      own = static_cast<std::size_t>(std::ranges::find_if(calls, is) - calls.begin());
    }
    const std::size_t until = rank(peer) + own + 1;
    for (const auto& [who, line] : lines_) {
      std::size_t left =
          who == peer ? own : std::min(until - std::min(until, rank(who)), line.calls.size());
      for (auto call = line.calls.begin(); left > 0; ++call, --left) visit(*call);
    }
  }

  // The peer had a turn without a call that waited.
  void HadTurn(std::uint64_t peer) { last_ = peer; }

  bool Waits(std::uint64_t peer) const {
    const auto found = lines_.find(peer);
    return found != lines_.end() && !found->second.calls.empty();
  }

  // What a call of the peer has cost, in any unit.
  void Charge(std::uint64_t peer, std::uint64_t cost) {
    if (const auto found = lines_.find(peer); found != lines_.end()) found->second.charged += cost;
  }

  // The rest of what Next() gave comes first of its peer's, whatever waits by now.
  void PutBack(std::uint64_t peer, Call call) {
    bytes_ += call.size();
    lines_[peer].calls.push_front(std::move(call));
    ++size_;
  }

  // The oldest of the peer for which `is` says so.
  template <typename Is>
  std::optional<Call> TakeOut(std::uint64_t peer, const Is& is) {
    const auto found = lines_.find(peer);
    if (found == lines_.end()) return std::nullopt;
    std::deque<Call>& calls = found->second.calls;
    const auto goes = std::ranges::find_if(calls, is);
    if (goes == calls.end()) return std::nullopt;
    Call call = std::move(*goes);
    calls.erase(goes);
    bytes_ -= call.size();
    --size_;
    return call;
  }

  // The peer has gone, with all of its calls.
  void Forget(std::uint64_t peer) {
    const auto found = lines_.find(peer);
    if (found == lines_.end()) return;
    size_ -= found->second.calls.size();
    for (const Call& call : found->second.calls) bytes_ -= call.size();
    lines_.erase(found);
  }

  std::size_t size() const { return size_; }
  std::size_t peers() const { return lines_.size(); }  // that are remembered

 private:
  struct Line {
    std::deque<Call> calls;
    std::uint64_t charged = 0;
  };

  const std::size_t most_each_, most_bytes_;
  std::map<std::uint64_t, Line> lines_;
  std::uint64_t last_ = 0;     // whose turn it was
  std::uint64_t charged_ = 0;  // that one, before its turn
  std::size_t size_ = 0;
  std::size_t bytes_ = 0;
};

}  // namespace troupe
