// A bare stream of gRPC in a process of its own, for peer_links_bench: prints the port it listens
// at, and sends back what one caller sends.
#include <sys/prctl.h>

#include <csignal>
#include <cstdio>

#include "cluster/transport/grpc_ping_for_test.h"

int main() {
  ::prctl(PR_SET_PDEATHSIG, SIGKILL);
  return troupe::AnswerPings([](std::uint16_t port) {
    std::printf("%d\n", port);
    std::fflush(stdout);
  });
}
