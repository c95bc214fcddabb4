// A node in a process of its own, for tests that stop and kill it: sends back every frame. Prints
// the port it listens at, and lives as long as the test does. usage: echo_peer [PORT]
#include <sys/prctl.h>

#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <thread>

#include "cluster/transport/peer_links.h"

namespace {

class Echo final : public troupe::LinkEvents {
 public:
  Echo(troupe::PeerLinks& links, std::size_t bytes) : links_(links), bytes_(bytes) {}

  void OnOpened(troupe::LinkId, const troupe::PeerIdentity&) override {}
  void OnFrame(troupe::LinkId link, std::span<const std::byte> frame) override {
    (void)links_.Send(
        link, bytes_ > 0 ? troupe::Frame(bytes_) : troupe::Frame(frame.begin(), frame.end()));
  }
  void OnClosed(troupe::LinkId, const troupe::Status&) override {}
  void OnUnreachable(troupe::LinkId, const troupe::Status&) override {}

 private:
  troupe::PeerLinks& links_;
  const std::size_t bytes_;
};

}  // namespace

int main(int argc, char** argv) {
  ::prctl(PR_SET_PDEATHSIG, SIGKILL);
  if (argc != 3) return 2;
  const auto links =
      troupe::PeerLinks::Listen({.port = static_cast<std::uint16_t>(std::atoi(argv[1]))});
  if (!links.ok()) {
    std::fprintf(stderr, "echo_peer: %s\n", links.status().message().c_str());
    return 1;
  }
  Echo echo(**links, static_cast<std::size_t>(std::atoi(argv[2])));
  (*links)->Start(echo);
  std::printf("%d\n", (*links)->port());
  std::fflush(stdout);
  for (;;) std::this_thread::sleep_for(std::chrono::hours(1));
}
