// What tests of links share: events kept until a test asks for them, and frames of random bytes.
#pragma once

#include <algorithm>
#include <chrono>
#include <condition_variable>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "base/rng.h"
#include "cluster/transport/peer_links.h"

namespace troupe {

inline Frame RandomFrame(Rng& rng, std::size_t bytes) {
  Frame frame(bytes);
  for (std::byte& byte : frame) byte = static_cast<std::byte>(rng.Next());
  return frame;
}

// What a PeerLinks told. on_frame, if there is one, gets the frames instead of the list.
class HeardEvents final : public LinkEvents {
 public:
  struct Closed {
    LinkId link = 0;
    Status why;
  };
  struct Heard {
    std::vector<std::pair<LinkId, PeerIdentity>> opened;
    std::map<LinkId, std::vector<Frame>> frames;
    std::vector<Closed> closed, unreachable;
  };

  void OnOpened(LinkId link, const PeerIdentity& peer) override {
    Note([&] { heard_.opened.emplace_back(link, peer); });
  }
  void OnFrame(LinkId link, std::span<const std::byte> frame) override {
    if (on_frame) return on_frame(link, frame);
    Note([&] { heard_.frames[link].emplace_back(frame.begin(), frame.end()); });
  }
  void OnClosed(LinkId link, const Status& why) override {
    Note([&] { heard_.closed.push_back({link, why}); });
  }
  void OnUnreachable(LinkId link, const Status& why) override {
    Note([&] { heard_.unreachable.push_back({link, why}); });
  }

  // Waits for it; false if it has not become so within 20 s.
  bool Wait(const std::function<bool(const Heard&)>& condition) {
    std::unique_lock lock(mu_);
    return changed_.wait_for(lock, std::chrono::seconds(20), [&] { return condition(heard_); });
  }
  bool WaitOpened(std::size_t count) {
    return Wait([=](const Heard& heard) { return heard.opened.size() >= count; });
  }
  bool WaitClosed(std::size_t count) {
    return Wait([=](const Heard& heard) { return heard.closed.size() >= count; });
  }
  bool WaitUnreachable(std::size_t count) {
    return Wait([=](const Heard& heard) { return heard.unreachable.size() >= count; });
  }
  bool WaitFrames(LinkId link, std::size_t count) {
    return Wait([=](const Heard& heard) {
      const auto found = heard.frames.find(link);
      return found != heard.frames.end() && found->second.size() >= count;
    });
  }
  Heard heard() {
    const std::lock_guard lock(mu_);
    return heard_;
  }

  std::function<void(LinkId, std::span<const std::byte>)> on_frame;  // set before Start

 private:
  template <typename F>
  void Note(F note) {
    const std::lock_guard lock(mu_);
    note();
    changed_.notify_all();
  }

  std::mutex mu_;
  std::condition_variable changed_;
  Heard heard_;
};

// A node that listens at a free port of the loopback.
struct TestNode {
  explicit TestNode(const TransportOptions& options = {})
      : links(PeerLinks::Listen(options).value()) {}

  void Start() { links->Start(heard); }
  // Sends each frame back where it came from.
  void StartEcho() {
    heard.on_frame = [to = links.get()](LinkId link, std::span<const std::byte> frame) {
      (void)to->Send(link, Frame(frame.begin(), frame.end()));
    };
    Start();
  }
  std::string address() const { return "127.0.0.1:" + std::to_string(links->port()); }
  // Once the link is open.
  LinkId DialAndWait(const std::string& peer) {
    const std::size_t before = heard.heard().opened.size();
    const LinkId link = links->Dial(peer).value();
    return heard.WaitOpened(before + 1) ? link : 0;
  }

  HeardEvents heard;
  std::unique_ptr<PeerLinks> links;  // goes first
};

// Starts both, and has `a` dial `b`: the link as each of them names it, 0 where there is none.
inline std::pair<LinkId, LinkId> StartLinked(TestNode& a, TestNode& b) {
  a.Start();
  b.Start();
  const LinkId of_a = a.DialAndWait(b.address());
  if (of_a == 0 || !b.heard.WaitOpened(1)) return {0, 0};
  return {of_a, b.heard.heard().opened[0].first};
}

}  // namespace troupe
