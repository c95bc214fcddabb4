// Two nodes of one process over real sockets. Peers that fail are in peer_links_faults_test.cc.
#include "cluster/transport/peer_links.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <cstring>
#include <future>
#include <thread>

#include "base/sanitized.h"
#include "cluster/transport/peer_links_for_test.h"
#include "testing/test_seed.h"

namespace troupe {
namespace {

using testing::HasSubstr;
using testing::IsEmpty;
using testing::SizeIs;
using namespace std::chrono_literals;

TEST(PeerLinks, BothEndsHearOfALinkAndWhoTheOtherIs) {
  TestNode a, b;
  a.Start();
  b.Start();
  const LinkId link = a.DialAndWait(b.address());
  ASSERT_NE(link, 0);
  ASSERT_TRUE(b.heard.WaitOpened(1));
  const auto [heard_link, peer] = a.heard.heard().opened.at(0);
  EXPECT_EQ(heard_link, link);
  EXPECT_EQ(peer.address, b.address());
  EXPECT_THAT(peer.names, IsEmpty()) << "plain text proves no name";
  EXPECT_THAT(b.heard.heard().opened.at(0).second.address, testing::StartsWith("127.0.0.1:"));
  EXPECT_EQ(a.links->counters().opened, 1);
  EXPECT_EQ(b.links->counters().opened, 1);
}

TEST(PeerLinks, RandomFramesComeBackWithTheSameBytesInOrder) {
  TestNode a, b;
  a.Start();
  b.StartEcho();
  const LinkId link = a.DialAndWait(b.address());
  ASSERT_NE(link, 0);
  Rng rng(TestSeed());
  std::vector<Frame> sent;
  std::uint64_t bytes = 0;
  for (int i = 0; i < 200; ++i) {
    // None, few, about a page, and some pages.
    const std::size_t most[] = {1, 20, 5000, 100'000};
    sent.push_back(RandomFrame(rng, rng.Below(most[i % 4])));
    bytes += sent.back().size();
    ASSERT_TRUE(a.links->Send(link, sent.back()).ok());
  }
  ASSERT_TRUE(a.heard.WaitFrames(link, sent.size()));
  EXPECT_EQ(a.heard.heard().frames[link], sent);
  const LinkCounters counters = a.links->counters();
  EXPECT_EQ(counters.frames_sent, sent.size());
  EXPECT_EQ(counters.bytes_sent, bytes);
  EXPECT_EQ(counters.frames_received, sent.size());
  EXPECT_EQ(counters.bytes_received, bytes);
}

TEST(PeerLinks, TrafficIsCountedForEachLinkAlone) {
  TestNode a, b, c;
  a.Start();
  b.StartEcho();
  c.StartEcho();
  const LinkId to_b = a.DialAndWait(b.address()), to_c = a.DialAndWait(c.address());
  ASSERT_NE(to_b, 0);
  ASSERT_NE(to_c, 0);
  ASSERT_TRUE(a.links->Send(to_b, Frame(1000)).ok());
  ASSERT_TRUE(a.links->Send(to_b, Frame(10)).ok());
  ASSERT_TRUE(a.links->Send(to_c, Frame(7)).ok());
  ASSERT_TRUE(a.heard.WaitFrames(to_b, 2));
  ASSERT_TRUE(a.heard.WaitFrames(to_c, 1));
  EXPECT_EQ(a.links->TrafficOf(to_b), (LinkTraffic{.sent = 1010, .received = 1010}));
  EXPECT_EQ(a.links->TrafficOf(to_c), (LinkTraffic{.sent = 7, .received = 7}));
  EXPECT_EQ(a.links->TrafficOf(to_b + to_c + 1), LinkTraffic());
}

TEST(PeerLinks, TheLastWordsOfABrokenLinkArriveAndItIsDialledAgainLater) {
  TestNode a({.refused_pause = 100ms}), b;
  const auto [of_a, of_b] = StartLinked(a, b);
  ASSERT_NE(of_a, 0);
  const Frame large(1 << 20, std::byte{1}), last(10, std::byte{2});
  ASSERT_TRUE(b.links->Send(of_b, large).ok());
  b.links->Break(of_b, last);
  EXPECT_EQ(b.links->Send(of_b, large).code(), Code::kUnavailable);
  ASSERT_TRUE(a.heard.WaitFrames(of_a, 2));
  EXPECT_EQ(a.heard.heard().frames[of_a].back(), last);
  ASSERT_TRUE(a.links->Send(of_a, large).ok());  // nobody hears it any more
  a.links->Break(of_a, {});
  ASSERT_TRUE(a.heard.WaitClosed(1));
  ASSERT_TRUE(b.heard.WaitClosed(1));
  EXPECT_THAT(b.heard.heard().frames[of_b], IsEmpty());
  EXPECT_EQ(b.heard.heard().closed[0].why.code(), Code::kCancelled);
  EXPECT_EQ(b.links->counters().lost, 0u);
  ASSERT_TRUE(a.heard.WaitOpened(2));
  EXPECT_EQ(a.heard.heard().opened[1].first, of_a);
}

TEST(PeerLinks, ALinkThatIsResetIsLostForBothAndComesBackSoon) {
  TestNode a, b;
  a.Start();
  b.Start();
  const LinkId link = a.DialAndWait(b.address());
  ASSERT_NE(link, 0);
  a.links->Reset(link);
  ASSERT_TRUE(a.heard.WaitClosed(1));
  ASSERT_TRUE(b.heard.WaitClosed(1));
  EXPECT_EQ(a.links->counters().lost, 1u);
  EXPECT_TRUE(a.heard.WaitOpened(2));
}

TEST(PeerLinks, ABrokenLinkEndsThoughItsPeerDoesNotHangUp) {
  TestNode a, b({.connect_time = 200ms});
  const auto [of_a, of_b] = StartLinked(a, b);
  ASSERT_NE(of_a, 0);
  b.links->Break(of_b, Frame(10));
  EXPECT_TRUE(b.heard.WaitClosed(1));
  EXPECT_TRUE(a.heard.WaitClosed(1));
}

TEST(PeerLinks, BothEndsSendAtOnce) {
  TestNode a, b;
  const auto [of_a, of_b] = StartLinked(a, b);
  ASSERT_NE(of_a, 0);
  constexpr int kFrames = 300;
  const auto send_all = [](PeerLinks& links, LinkId link, std::uint64_t seed) {
    Rng rng(seed);
    std::vector<Frame> sent;
    for (int i = 0; i < kFrames; ++i) {
      sent.push_back(RandomFrame(rng, rng.Below(20'000)));
      EXPECT_TRUE(links.Send(link, sent.back()).ok());
    }
    return sent;
  };
  auto from_a = std::async(std::launch::async, send_all, std::ref(*a.links), of_a, 1);
  auto from_b = std::async(std::launch::async, send_all, std::ref(*b.links), of_b, 2);
  ASSERT_TRUE(a.heard.WaitFrames(of_a, kFrames));
  ASSERT_TRUE(b.heard.WaitFrames(of_b, kFrames));
  EXPECT_EQ(b.heard.heard().frames[of_b], from_a.get());
  EXPECT_EQ(a.heard.heard().frames[of_a], from_b.get());
}

TEST(PeerLinks, ThreadsThatSendOnOneLinkKeepEachTheirOrder) {
  TestNode a, b;
  const auto [link, of_b] = StartLinked(a, b);
  ASSERT_NE(link, 0);
  constexpr int kThreads = 4, kEach = kSanitized ? 300 : 3000;
  std::vector<std::thread> threads;
  for (int t = 0; t < kThreads; ++t) {
    threads.emplace_back([&a, link = link, t] {
      for (int i = 0; i < kEach; ++i) {
        EXPECT_TRUE(
            a.links->Send(link, {std::byte(t), std::byte(i & 0xff), std::byte(i >> 8)}).ok());
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  ASSERT_TRUE(b.heard.WaitFrames(of_b, kThreads * kEach));
  int next[kThreads] = {};
  const std::vector<Frame> frames = b.heard.heard().frames[of_b];
  for (const Frame& frame : frames) {
    ASSERT_THAT(frame, SizeIs(3));
    int& expected = next[static_cast<int>(frame[0])];
    ASSERT_EQ(static_cast<int>(frame[1]) | static_cast<int>(frame[2]) << 8, expected++);
  }
}

TEST(PeerLinks, FramesUpToTheLimitAreCarried) {
  Frame largest(TransportOptions().most_frame);
  Rng rng(7);
  for (std::size_t i = 0; i < largest.size(); i += 509) {
    largest[i] = static_cast<std::byte>(rng.Next());
  }
  std::promise<bool> arrived;
  TestNode a, b;
  b.heard.on_frame = [&](LinkId, auto frame) {
    arrived.set_value(frame.size() == largest.size() &&
                      std::memcmp(frame.data(), largest.data(), frame.size()) == 0);
  };
  a.Start();
  b.Start();
  const LinkId link = a.DialAndWait(b.address());
  ASSERT_NE(link, 0);
  ASSERT_TRUE(a.links->Send(link, largest).ok());
  auto same = arrived.get_future();
  ASSERT_EQ(same.wait_for(20s), std::future_status::ready);
  EXPECT_TRUE(same.get());
  const Status refused = a.links->Send(link, Frame(largest.size() + 1));
  EXPECT_EQ(refused.code(), Code::kInvalidArgument);
  EXPECT_THAT(refused.message(), HasSubstr("67108865 bytes, at most 67108864"));
}

TEST(PeerLinks, AFrameThatIsTooLargeForTheOtherEndEndsTheLinkWithThatReason) {
  TestNode large, small({.most_frame = 1000});
  large.Start();
  small.Start();
  const LinkId dialled = large.DialAndWait(small.address());
  ASSERT_NE(dialled, 0);
  ASSERT_TRUE(large.links->Send(dialled, Frame(1001)).ok());
  ASSERT_TRUE(large.heard.WaitClosed(1));
  const Status why = large.heard.heard().closed[0].why;
  EXPECT_EQ(why.code(), Code::kResourceExhausted) << why.ToString();
  EXPECT_THAT(why.message(), HasSubstr("1001 vs. 1000"));
  ASSERT_TRUE(small.heard.WaitClosed(1));

  ASSERT_NE(small.DialAndWait(large.address()), 0);
  ASSERT_TRUE(large.heard.Wait([&](const auto& heard) {
    return std::ranges::any_of(heard.opened, [&](auto& each) { return each.first != dialled; });
  }));
  LinkId accepted = 0;
  const auto opened = large.heard.heard().opened;
  for (const auto& [link, peer] : opened) {
    if (link != dialled) accepted = link;
  }
  ASSERT_TRUE(large.links->Send(accepted, Frame(1001)).ok());
  ASSERT_TRUE(small.heard.Wait([](const auto& heard) {
    return std::ranges::any_of(heard.closed, [](const auto& closed) {
      return closed.why.code() == Code::kResourceExhausted;
    });
  }));
  EXPECT_THAT(large.heard.heard().frames, IsEmpty());
  EXPECT_THAT(small.heard.heard().frames, IsEmpty());
}

TEST(PeerLinks, ALinkThatIsNotOpenTakesNoFrames) {
  TestNode a, b;
  a.Start();
  b.Start();
  EXPECT_EQ(a.links->Send(99, Frame(1)).code(), Code::kUnavailable);
  const LinkId link = a.DialAndWait(b.address());
  ASSERT_NE(link, 0);
  a.links->Close(link);
  EXPECT_EQ(a.links->Send(link, Frame(1)).code(), Code::kUnavailable);
  ASSERT_TRUE(a.heard.WaitClosed(1));
  EXPECT_EQ(a.heard.heard().closed[0].link, link);
  EXPECT_EQ(a.heard.heard().closed[0].why.code(), Code::kCancelled);
  EXPECT_EQ(a.links->counters().lost, 0);
  ASSERT_TRUE(b.heard.WaitClosed(1));
  EXPECT_EQ(b.heard.heard().closed[0].why.code(), Code::kUnavailable);
  EXPECT_EQ(b.links->counters().lost, 1);
  std::this_thread::sleep_for(250ms);  // longer than the first pause
  EXPECT_THAT(a.heard.heard().opened, SizeIs(1)) << "dialled again after Close";
}

TEST(PeerLinks, APeerThatClosesALinkIsDialledAgain) {
  TestNode a, b;
  a.Start();
  b.StartEcho();
  const LinkId link = a.DialAndWait(b.address());
  ASSERT_NE(link, 0);
  ASSERT_TRUE(b.heard.WaitOpened(1));
  b.links->Close(b.heard.heard().opened[0].first);
  ASSERT_TRUE(a.heard.WaitOpened(2));
  EXPECT_EQ(a.heard.heard().opened[1].first, link) << "keeps its id";
  ASSERT_TRUE(a.links->Send(link, Frame(5)).ok());
  ASSERT_TRUE(a.heard.WaitFrames(link, 1));
}

TEST(PeerLinks, APeerMayBeDialledBeforeItListens) {
  auto b = std::make_unique<TestNode>();
  const TransportOptions again{.port = b->links->port()};
  b.reset();
  TestNode a;
  a.Start();
  const LinkId link = a.links->Dial("127.0.0.1:" + std::to_string(again.port)).value();
  ASSERT_TRUE(a.heard.WaitUnreachable(2));
  const auto heard = a.heard.heard();
  EXPECT_THAT(heard.opened, IsEmpty());
  EXPECT_EQ(heard.unreachable[0].link, link);
  EXPECT_EQ(heard.unreachable[0].why.code(), Code::kUnavailable);
  EXPECT_THAT(heard.unreachable[0].why.message(), HasSubstr("Connection refused"));
  b = std::make_unique<TestNode>(again);
  b->Start();
  ASSERT_TRUE(a.heard.WaitOpened(1));
  EXPECT_EQ(a.heard.heard().opened[0].first, link);
  EXPECT_THAT(a.heard.heard().closed, IsEmpty()) << "what was never open is not closed";
  EXPECT_GE(a.links->counters().unreachable, 2);
}

TEST(PeerLinks, EventsMaySendDialAndClose) {
  std::promise<void> second_open;
  std::atomic<LinkId> first = 0;
  TestNode a, b;
  b.Start();
  a.heard.on_frame = [&](LinkId link, auto) {
    if (link != first) return second_open.set_value();
    a.links->Close(link);
    ASSERT_TRUE(a.links->Dial(b.address()).ok());
  };
  a.Start();
  first = a.links->Dial(b.address()).value();
  ASSERT_TRUE(b.heard.WaitOpened(1));
  ASSERT_TRUE(b.links->Send(b.heard.heard().opened[0].first, Frame(1)).ok());
  ASSERT_TRUE(b.heard.WaitOpened(2));
  ASSERT_TRUE(b.links->Send(b.heard.heard().opened[1].first, Frame(1)).ok());
  EXPECT_EQ(second_open.get_future().wait_for(20s), std::future_status::ready);
  EXPECT_EQ(a.heard.heard().closed.at(0).link, first);
}

TEST(PeerLinks, NoMoreLinksAreAcceptedThanAllowed) {
  TestNode a, b({.most_accepted = 1});
  a.Start();
  b.Start();
  const LinkId link = a.DialAndWait(b.address());
  ASSERT_NE(link, 0);
  const LinkId second = a.links->Dial(b.address()).value();
  ASSERT_TRUE(a.heard.WaitUnreachable(1));
  EXPECT_EQ(a.heard.heard().unreachable[0].link, second);
  EXPECT_EQ(a.heard.heard().unreachable[0].why.code(), Code::kResourceExhausted);
  EXPECT_THAT(a.heard.heard().unreachable[0].why.message(), HasSubstr("as many links"));
  EXPECT_GE(b.links->counters().refused, 1);
  a.links->Close(link);
  ASSERT_TRUE(a.heard.WaitOpened(2)) << "a place has become free";
  EXPECT_EQ(a.heard.heard().opened[1].first, second);
}

TEST(PeerLinks, AnAddressInUseIsOneClearLine) {
  const TestNode a;
  const auto second = PeerLinks::Listen({.port = a.links->port()});
  ASSERT_FALSE(second.ok());
  EXPECT_EQ(second.status().code(), Code::kUnavailable);
  EXPECT_EQ(second.status().message(), a.address() + ": Address already in use");
  const auto elsewhere = PeerLinks::Listen({.host = "192.0.2.1", .allow_plain_text = true});
  ASSERT_FALSE(elsewhere.ok());
  EXPECT_EQ(elsewhere.status().message(), "192.0.2.1:0: Cannot assign requested address");
}

TEST(PeerLinks, PlainTextDialsLoopbackOnly) {
  TestNode a;
  a.Start();
  EXPECT_EQ(a.links->Dial("10.0.0.2:7070").status().code(), Code::kInvalidArgument);
  EXPECT_EQ(a.links->Dial("nonsense").status().code(), Code::kInvalidArgument);
}

TEST(PeerLinks, ListenAtTheLoopbackOfIpv6) {
  HeardEvents heard;
  const auto links = PeerLinks::Listen({.host = "::1"});
  if (!links.ok()) GTEST_SKIP() << links.status().ToString();
  (*links)->Start(heard);
  TestNode a;
  a.Start();
  ASSERT_NE(a.DialAndWait("[::1]:" + std::to_string((*links)->port())), 0);
  ASSERT_TRUE(heard.WaitOpened(1));
  EXPECT_THAT(heard.heard().opened[0].second.address, testing::StartsWith("[::1]:"));
}

}  // namespace
}  // namespace troupe
