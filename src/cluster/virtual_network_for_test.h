// A network on a virtual clock, between nodes that dial each other as PeerLinks does: frames of a
// link arrive whole, in order and once, or the link ends. A path from one node to another may be
// slow, or stopped in that direction alone: then frames wait in it, and each end finds out by its
// own signs of life. A node that hangs is taken for dead by others, and learns of that when it goes
// on. A seed decides what takes how long.
#pragma once

#include <cstddef>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "base/rng.h"
#include "cluster/members/fake_kv_network_for_test.h"
#include "cluster/transport/frame_links.h"
#include "cluster/transport/peer_links.h"
#include "cluster/transport/redial_pause.h"

namespace troupe {

struct VirtualLinkCounters {
  std::uint64_t opened = 0, silent = 0, full = 0, refused = 0, unreachable = 0;
};

class VirtualNetwork {
 public:
  // Has a node do something after a while, if it still lives then, and as soon as it does not hang.
  using Do = std::function<void(std::size_t node, Nanos delay, std::function<void()> what)>;

  VirtualNetwork(VirtualTime& time, Rng& rng, Do call, std::vector<std::string> addresses);

  void Start(std::size_t node, LinkEvents& events) { hosts_[node].events = &events; }
  // Its system tells those at the other ends, or not: as where a machine loses its power.
  void Kill(std::size_t node, bool silently);
  void Hang(std::size_t node);
  void GoOn(std::size_t node);
  // What comes from one node to another stops, or goes on.
  void SetStopped(std::size_t from, std::size_t to, bool stopped);
  void SetBytesPerSecond(std::size_t from, std::size_t to, double speed);
  void CutAny();
  void set_most_unsent(std::size_t bytes) { most_unsent_ = bytes; }
  void Mend();

  Result<LinkId> Dial(std::size_t node, std::string_view address);
  Status Send(std::size_t node, LinkId link, Frame frame);
  void Break(std::size_t node, LinkId link, Frame last);
  void Reset(LinkId link);
  void Close(LinkId link);

  // The node there, while it is open.
  std::optional<std::size_t> OtherEnd(LinkId link) const {
    const auto found = ends_.find(link);
    if (found == ends_.end()) return std::nullopt;
    return found->second.other().node;
  }

  const VirtualLinkCounters& counters() const { return counters_; }

 private:
  static constexpr Nanos kMs = 1'000'000;
  static constexpr std::size_t kUsualUnsent = 1 << 20;

  struct Host {
    LinkEvents* events = nullptr;
    std::uint64_t hangs = 0;  // odd: it does
  };
  struct Path {
    bool stopped = false;
    std::uint64_t stops = 0;
    double bytes_per_second = 1e8;
    Nanos free_at = 0;
  };
  struct Side {
    std::size_t node = 0;
    LinkId link = 0;
    bool open = false, told = false, broken = false;
    std::size_t unsent = 0;
    Nanos arrives = 0;         // the last that was sent from here, at the other side
    std::deque<Frame> stalls;  // sent from here, on a path that is stopped
    bool ends = false;         // after those
  };
  struct Connection {
    Side sides[2];
  };
  struct Dialled {
    std::size_t node = 0, to = 0;
    std::string address;
    RedialPause pause{100 * kMs, 5'000 * kMs};
    Nanos opened = 0;
  };
  struct End {
    std::shared_ptr<Connection> connection;
    int side = 0;
    Side& own() const { return connection->sides[side]; }
    Side& other() const { return connection->sides[1 - side]; }
    End turned() const { return {connection, 1 - side}; }
  };

  Path& PathOf(std::size_t from, std::size_t to) { return paths_[{from, to}]; }
  bool Hangs(std::size_t node) const { return hosts_[node].hangs % 2 == 1; }
  Nanos Delay() {
    return static_cast<Nanos>(1 + rng_.Below(rng_.Below(20) == 0 ? 300 : 40)) * kMs / 4;
  }
  // Until a sign of life is missed.
  Nanos Patience() { return static_cast<Nanos>(4'000 + rng_.Below(4'000)) * kMs; }
  void Try(LinkId link);
  void TryLater(LinkId link, Nanos pause);
  void Open(LinkId link);
  // On its way to the other end.
  void Carry(const End& from, Frame frame);
  void CarryEnd(const End& from);
  // This end is over; the other one hears of it if anything gets there.
  void Finish(const End& end, const Status& why, bool tell);
  void FinishWithoutLife(const End& end);
  std::vector<End> EndsAt(std::size_t node) const;

  VirtualTime& time_;
  Rng& rng_;
  const Do do_;
  const std::vector<std::string> addresses_;
  std::vector<Host> hosts_;
  std::map<std::pair<std::size_t, std::size_t>, Path> paths_;
  std::map<LinkId, Dialled> dialled_;
  std::map<LinkId, End> ends_;
  std::size_t most_unsent_ = kUsualUnsent;
  LinkId last_link_ = 0;
  VirtualLinkCounters counters_;
};

}  // namespace troupe
