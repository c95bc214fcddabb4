// Peers that die, freeze, do not read, say nothing or speak something else.
#include <arpa/inet.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include <atomic>
#include <csignal>
#include <future>
#include <thread>

#include "base/clock.h"
#include "base/fd.h"
#include "cluster/transport/echo_process_for_test.h"
#include "cluster/transport/peer_links_for_test.h"

namespace troupe {
namespace {

using testing::AnyOf;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::SizeIs;
using namespace std::chrono_literals;

std::string Loopback(std::uint16_t port) { return "127.0.0.1:" + std::to_string(port); }

// A socket whose bytes a test says and reads.
class RawSocket {
 public:
  static RawSocket Listening() {
    RawSocket made;
    EXPECT_EQ(::listen(made.fd_.get(), 8), 0);
    return made;
  }
  static RawSocket Connected(std::uint16_t port) {
    RawSocket made;
    sockaddr_in address = Address(port);
    EXPECT_EQ(
        ::connect(made.fd_.get(), reinterpret_cast<const sockaddr*>(&address), sizeof address), 0);
    return made;
  }

  std::uint16_t port() const {
    sockaddr_in address{};
    socklen_t size = sizeof address;
    ::getsockname(fd_.get(), reinterpret_cast<sockaddr*>(&address), &size);
    return ntohs(address.sin_port);
  }
  UniqueFd Accept() const { return UniqueFd(::accept(fd_.get(), nullptr, nullptr)); }
  int fd() const { return fd_.get(); }

 private:
  RawSocket() : fd_(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0)) {}
  static sockaddr_in Address(std::uint16_t port) {
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_port = htons(port);
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    return address;
  }
  UniqueFd fd_;
};

void Say(int fd, std::string_view bytes) {
  (void)!::send(fd, bytes.data(), bytes.size(), MSG_NOSIGNAL);
}

TEST(PeerLinksFaults, APeerThatIsKilledIsHeardOfAndDialledAgain) {
  auto child = std::make_unique<EchoProcess>();
  const std::uint16_t port = child->ReadPort();
  ASSERT_NE(port, 0);
  TestNode a;
  a.Start();
  const LinkId link = a.DialAndWait(Loopback(port));
  ASSERT_NE(link, 0);
  ASSERT_TRUE(a.links->Send(link, Frame(100, std::byte{1})).ok());
  ASSERT_TRUE(a.heard.WaitFrames(link, 1));

  child->Kill();
  ASSERT_TRUE(a.heard.WaitClosed(1));
  EXPECT_EQ(a.heard.heard().closed[0].link, link);
  EXPECT_EQ(a.heard.heard().closed[0].why.code(), Code::kUnavailable);
  EXPECT_EQ(a.links->Send(link, Frame(1)).code(), Code::kUnavailable);
  EXPECT_EQ(a.links->counters().lost, 1);
  ASSERT_TRUE(a.heard.WaitUnreachable(1));

  child = std::make_unique<EchoProcess>(port);
  ASSERT_EQ(child->ReadPort(), port);
  ASSERT_TRUE(a.heard.WaitOpened(2));
  EXPECT_EQ(a.heard.heard().opened[1].first, link);
  ASSERT_TRUE(a.links->Send(link, Frame(200, std::byte{2})).ok());
  ASSERT_TRUE(a.heard.WaitFrames(link, 2));
  EXPECT_EQ(a.heard.heard().frames[link][1], Frame(200, std::byte{2}))
      << "nothing of before the loss";
}

TEST(PeerLinksFaults, APeerThatFreezesIsFoundOutWhetherFramesWaitForItOrNot) {
  EchoProcess child;
  const std::uint16_t port = child.ReadPort();
  ASSERT_NE(port, 0);
  TestNode a({.ping_every = 1000ms, .ping_answer = 1000ms, .connect_time = 500ms});
  a.Start();
  const LinkId idle = a.DialAndWait(Loopback(port));
  const LinkId busy = a.DialAndWait(Loopback(port));
  ASSERT_NE(idle, 0);
  ASSERT_NE(busy, 0);
  child.Signal(SIGSTOP);
  const Stopwatch watch;
  for (int i = 0; i < 20; ++i) ASSERT_TRUE(a.links->Send(busy, Frame(1 << 20)).ok());
  ASSERT_TRUE(a.heard.WaitClosed(2));
  EXPECT_GT(watch.Seconds(), 0.9) << "an answer is waited for";
  const std::vector<HeardEvents::Closed> closed = a.heard.heard().closed;
  for (const auto& each : closed) {
    EXPECT_EQ(each.why.code(), Code::kUnavailable) << each.why.ToString();
  }
  // The kernel still accepts connections for it.
  ASSERT_TRUE(a.heard.WaitUnreachable(1));
  child.Signal(SIGCONT);
  ASSERT_TRUE(a.heard.WaitOpened(4));
}

TEST(PeerLinksFaults, WhatWaitsForAReaderThatDoesNotReadIsBounded) {
  std::promise<void> go_on;
  std::atomic<std::uint64_t> received = 0;
  TestNode a({.most_frame = 100'000, .most_unsent = 1'000'000}), b;
  b.heard.on_frame = [&, waiting = go_on.get_future().share()](LinkId, auto frame) {
    waiting.wait();
    received += frame.size();
  };
  a.Start();
  b.Start();
  const LinkId link = a.DialAndWait(b.address());
  ASSERT_NE(link, 0);
  std::uint64_t sent = 0;
  Status refused;
  while (refused.ok() && sent < 500'000'000) {
    refused = a.links->Send(link, Frame(100'000));
    if (refused.ok()) sent += 100'000;
  }
  EXPECT_EQ(refused.code(), Code::kResourceExhausted);
  EXPECT_LT(sent, 100'000'000) << "what gRPC and the kernel took is bounded, too";
  go_on.set_value();
  ASSERT_TRUE(b.heard.WaitOpened(1));
  const Stopwatch watch;
  while (received < sent && watch.Seconds() < 20) std::this_thread::sleep_for(1ms);
  EXPECT_EQ(received, sent) << "the frame that was refused was not sent, all others were";
  EXPECT_THAT(a.heard.heard().closed, IsEmpty());
  EXPECT_TRUE(a.links->Send(link, Frame(100'000)).ok()) << "there is room again";
}

TEST(PeerLinksFaults, APeerThatSaysNothingIsGivenUp) {
  const RawSocket silent = RawSocket::Listening();
  TestNode a({.connect_time = 300ms});
  a.Start();
  ASSERT_TRUE(a.links->Dial(Loopback(silent.port())).ok());
  ASSERT_TRUE(a.heard.WaitUnreachable(2));
  EXPECT_EQ(a.heard.heard().unreachable[0].why.code(), Code::kUnavailable);
  EXPECT_THAT(a.heard.heard().opened, IsEmpty());
}

TEST(PeerLinksFaults, APeerOfAnotherProtocolIsUnreachable) {
  const RawSocket web = RawSocket::Listening();
  std::atomic<bool> stop = false;
  std::thread answering([&] {
    while (!stop) {
      const UniqueFd client = web.Accept();
      Say(client.get(), "HTTP/1.1 400 Bad Request\r\nContent-Length: 0\r\n\r\n");
    }
  });
  TestNode a({.connect_time = 1000ms});
  a.Start();
  ASSERT_TRUE(a.links->Dial(Loopback(web.port())).ok());
  EXPECT_TRUE(a.heard.WaitUnreachable(2));
  EXPECT_THAT(a.heard.heard().opened, IsEmpty());
  stop = true;
  const RawSocket last = RawSocket::Connected(web.port());
  answering.join();
}

TEST(PeerLinksFaults, StrangersNeitherBlockNorEndANode) {
  TestNode a, b({.connect_time = 300ms});
  a.Start();
  b.StartEcho();
  std::vector<RawSocket> strangers;
  Rng rng(3);
  for (int i = 0; i < 40; ++i) {
    strangers.push_back(RawSocket::Connected(b.links->port()));
    const int fd = strangers.back().fd();
    switch (i % 5) {
      case 0:  // says nothing
        break;
      case 1:
        Say(fd, "GET / HTTP/1.1\r\nHost: a\r\n\r\n");
        break;
      case 2: {
        const Frame noise = RandomFrame(rng, 10'000);
        Say(fd, {reinterpret_cast<const char*>(noise.data()), noise.size()});
        break;
      }
      case 3:  // HTTP/2's greeting and settings, and no call
        Say(fd, {"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n\0\0\0\4\0\0\0\0\0", 33});
        break;
      case 4:  // a frame of another kind where settings should be, larger than allowed
        Say(fd, {"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n\xff\xff\xff\0\0\0\0\0\1", 33});
        break;
    }
  }
  const LinkId link = a.DialAndWait(b.address());
  ASSERT_NE(link, 0);
  ASSERT_TRUE(a.links->Send(link, Frame(1000)).ok());
  ASSERT_TRUE(a.heard.WaitFrames(link, 1));
  // All are let go: reading gives what was left to read, and then the end.
  for (const RawSocket& stranger : strangers) {
    const timeval longest{.tv_sec = 10, .tv_usec = 0};
    ::setsockopt(stranger.fd(), SOL_SOCKET, SO_RCVTIMEO, &longest, sizeof longest);
    char bytes[4096];
    ssize_t got = 0;
    do {
      got = ::recv(stranger.fd(), bytes, sizeof bytes, 0);
    } while (got > 0);
    EXPECT_TRUE(got == 0 || errno == ECONNRESET) << "still connected";
  }
  EXPECT_EQ(b.links->counters().opened, 1);
  ASSERT_TRUE(a.links->Send(link, Frame(1000)).ok());
  ASSERT_TRUE(a.heard.WaitFrames(link, 2));
}

TEST(PeerLinksFaults, StoppingWhileBusyDoesNotHang) {
  const RawSocket silent = RawSocket::Listening();
  for (int round = 0; round < 5; ++round) {
    auto a = std::make_unique<TestNode>(), b = std::make_unique<TestNode>();
    a->StartEcho();
    b->StartEcho();
    ASSERT_TRUE(a->links->Dial(Loopback(silent.port())).ok());
    ASSERT_TRUE(a->links->Dial("127.0.0.1:1").ok());
    std::vector<LinkId> links;
    for (int i = 0; i < 3; ++i) links.push_back(a->DialAndWait(b->address()));
    for (int i = 0; i < 300; ++i) {
      // They bounce between the two from now on.
      ASSERT_TRUE(a->links->Send(links[static_cast<std::size_t>(i % 3)], Frame(100 * i)).ok());
    }
    std::this_thread::sleep_for(round * 2ms);
    ASSERT_TRUE(a->links->Dial(b->address()).ok());
    auto& first = round % 2 == 0 ? a : b;
    first->links.reset();
    const auto heard = first->heard.heard();
    EXPECT_EQ(heard.opened.size(), heard.closed.size());
    for (const auto& closed : heard.closed) EXPECT_EQ(closed.why.code(), Code::kCancelled);
  }
}

TEST(PeerLinksFaults, AThreadMaySendWhileItsLinkIsLost) {
  TestNode a({.longest_pause = 100ms});
  a.Start();
  auto b = std::make_unique<TestNode>();
  b->Start();
  const LinkId link = a.DialAndWait(b->address());
  ASSERT_NE(link, 0);
  std::atomic<bool> stop = false;
  std::thread sending([&] {
    while (!stop) {
      const Status status = a.links->Send(link, Frame(1000));
      ASSERT_THAT(status.code(), AnyOf(Code::kOk, Code::kUnavailable, Code::kResourceExhausted));
    }
  });
  for (int i = 0; i < 5; ++i) {
    const TransportOptions again{.port = b->links->port()};
    std::this_thread::sleep_for(20ms);
    b.reset();
    b = std::make_unique<TestNode>(again);
    b->heard.on_frame = [](LinkId, auto) {};
    b->Start();
    EXPECT_TRUE(a.heard.WaitOpened(static_cast<std::size_t>(i) + 2));
  }
  stop = true;
  sending.join();
  EXPECT_THAT(a.heard.heard().closed, SizeIs(testing::Ge(5)));
}

}  // namespace
}  // namespace troupe
