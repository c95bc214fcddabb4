#include "server/live_feed.h"

#include <gtest/gtest.h>

#include <atomic>

#include "server/fake_reply_for_test.h"

namespace troupe {
namespace {

using std::chrono::milliseconds;

class LiveFeedTest : public testing::Test {
 protected:
  std::string Tell() { return "event " + std::to_string(++told_) + "\n"; }
  std::shared_ptr<FakeReply> Watch(LiveFeed& feed) {
    auto reply = std::make_shared<FakeReply>();
    EXPECT_TRUE(feed.Add(reply, "hello\n").ok());
    return reply;
  }

  std::atomic<int> told_ = 0;
  std::function<std::string()> tell_ = [this] { return Tell(); };
};

TEST_F(LiveFeedTest, PutsNothingTogetherUnlessSomebodyWatches) {
  LiveFeed feed(tell_, {.every = milliseconds(1)});
  std::this_thread::sleep_for(milliseconds(20));
  EXPECT_EQ(told_, 0);
  const auto reply = Watch(feed);
  reply->WaitFor("event 3");
  reply->Leave();
  while (feed.watchers() > 0) std::this_thread::sleep_for(milliseconds(1));
  const int told = told_;
  std::this_thread::sleep_for(milliseconds(20));
  EXPECT_EQ(told_, told);
  Watch(feed)->WaitFor("event " + std::to_string(told + 2));  // and goes on for the next one
}

TEST_F(LiveFeedTest, TellsAllWatchersTheSameFromTheirBeginning) {
  LiveFeed feed(tell_, {.every = milliseconds(1)});
  const auto a = Watch(feed), b = Watch(feed);
  EXPECT_EQ(a->head().content_type, "text/event-stream");
  EXPECT_TRUE(a->body().starts_with("hello\n"));
  a->WaitFor("event 9\n");
  b->WaitFor("event 9\n");
  EXPECT_NE(b->body().find("event 8\nevent 9\n"), std::string::npos);
}

TEST_F(LiveFeedTest, KeepsItsPace) {
  LiveFeed feed(tell_, {.every = milliseconds(50)});
  const auto start = std::chrono::steady_clock::now();
  const auto reply = Watch(feed);
  reply->WaitFor("event 5");
  EXPECT_GE(std::chrono::steady_clock::now() - start, milliseconds(4 * 50));
}

TEST_F(LiveFeedTest, ANewWatcherMakesNoEventComeEarlier) {
  LiveFeed feed(tell_, {.every = milliseconds(100), .most_watchers = 50});
  const auto start = std::chrono::steady_clock::now();
  std::vector<std::shared_ptr<FakeReply>> replies;
  for (int i = 0; i < 50; ++i) replies.push_back(Watch(feed));
  replies.front()->WaitFor("event 3");
  EXPECT_GE(std::chrono::steady_clock::now() - start, milliseconds(200));
}

TEST_F(LiveFeedTest, TakesNoMoreWatchersThanItMay) {
  LiveFeed feed(tell_, {.every = milliseconds(1), .most_watchers = 2});
  const auto a = Watch(feed), b = Watch(feed);
  const auto c = std::make_shared<FakeReply>();
  const Status refused = feed.Add(c, "hello\n");
  EXPECT_EQ(refused.code(), Code::kUnavailable);
  EXPECT_GT(refused.retry_after(), 0);
  EXPECT_EQ(c->status(), 0) << "the caller answers it";
  a->Leave();
  while (feed.watchers() == 2) std::this_thread::sleep_for(milliseconds(1));
  EXPECT_TRUE(feed.Add(c, "hello\n").ok());
}

TEST_F(LiveFeedTest, ClosingEndsEveryStreamAndTakesNobodyAnyMore) {
  LiveFeed feed(tell_, {.every = std::chrono::hours(1)});
  const auto a = Watch(feed);
  a->WaitFor("event 1");
  feed.Close();
  a->WaitForEnd();
  EXPECT_EQ(feed.watchers(), 0u);
  EXPECT_EQ(feed.Add(std::make_shared<FakeReply>(), "hello\n").code(), Code::kUnavailable);
  feed.Close();
}

}  // namespace
}  // namespace troupe
