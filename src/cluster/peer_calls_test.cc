// Whom a node asks for the rows of a layer, and what becomes of those that nobody answers.
#include "cluster/peer_calls.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <thread>
#include <vector>

#include "cluster/peer_calls_for_test.h"

namespace troupe {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;

TEST_F(PeerCallsTest, HoldersAreThoseThatSayThatTheyHoldIt) {
  Open(2);
  nodes_->Hold(1, 1, {2});
  (void)nodes_->calls().Places();
  EXPECT_THAT(nodes_->calls().HoldersOf({1, 2}), ElementsAre(1));
  EXPECT_THAT(nodes_->calls().HoldersOf({1, 3}), IsEmpty());
  nodes_->directory().OnGone(2);
  (void)nodes_->calls().Places();
  EXPECT_THAT(nodes_->calls().HoldersOf({1, 2}), IsEmpty());
}

TEST_F(PeerCallsTest, APlaceIsPricedByTheBytesOfTheFormThatIsAskedFor) {
  Open(1);
  nodes_->Hold(0, 1, experts_);
  for (int i = 0; i < 50; ++i) {
    nodes_->calls().OnAsked(layer_->batch(), RowForm::kFloat);
    Ask();
    (void)TakeAllNews(nodes_->calls());
  }
  const double byte_seconds = nodes_->calls().Links().at(0).byte_seconds;
  const auto row_seconds = [&](RowForm form) {
    nodes_->calls().OnAsked(layer_->batch(), form);
    return nodes_->calls().Places()[0].row_seconds;
  };
  const double saved = row_seconds(RowForm::kFloat) - row_seconds(RowForm::kInt8);
  const std::size_t bytes = WireRowBytes(RowForm::kFloat, nodes_->shape().width) -
                            WireRowBytes(RowForm::kInt8, nodes_->shape().width);
  EXPECT_GT(saved, 0);
  EXPECT_NEAR(saved, byte_seconds * static_cast<double>(bytes), 0.2 * saved + 1e-9);
}

TEST_F(PeerCallsTest, WhatAPeerDoesNotHoldAnyMoreIsLoaded) {
  Open(1);
  nodes_->Hold(0, 1, experts_);
  (void)nodes_->calls().Places();
  nodes_->held(0).Remove({1, experts_[1]});
  nodes_->calls().Ask(layer_->batch(), MissesOf(experts_, 0));
  const TakenNews had = TakeAllNews(nodes_->calls());
  EXPECT_EQ(had.to_load.size(), experts_.size());
  EXPECT_EQ(nodes_->host(0).counters().not_held, 1u);
  EXPECT_EQ(nodes_->calls().counters().refused, 1u);
}

TEST_F(PeerCallsTest, ASilentPeerIsGivenUpAndTheNextHolderAsked) {
  Open(2);
  nodes_->Hold(0, 1, experts_);
  nodes_->Hold(1, 1, experts_);
  std::vector<PeerMessageKind> silent;  // what it was told
  nodes_->on_ask = [&](LinkId link, const std::vector<std::byte>& frame) {
    if (link == 1) silent.push_back(KindOfFrame(frame).value());
    if (link == 2) nodes_->Deliver(link, frame);
    return OkStatus();
  };
  Ask(0);
  const TakenNews had = TakeAllNews(nodes_->calls());
  EXPECT_THAT(had.to_load, IsEmpty());
  ExpectBytes(had);
  EXPECT_EQ(nodes_->calls().counters().hedges, 1u);
  (void)nodes_->calls().Take();
  EXPECT_THAT(silent, ElementsAre(PeerMessageKind::kAsk, PeerMessageKind::kCancel));
  EXPECT_EQ(nodes_->calls().counters().cancelled, 1u);
  // It has become expensive: the next time the planner prefers the other one.
  const std::span<const Place> places = nodes_->calls().Places();
  EXPECT_GT(places[0].queued_seconds, places[1].queued_seconds);
}

TEST_F(PeerCallsTest, APeerThatGoesInTheMiddleLeavesTheRestToTheDisk) {
  Open(1);
  nodes_->Hold(0, 1, experts_);
  nodes_->on_ask = [](LinkId, const std::vector<std::byte>&) { return OkStatus(); };
  Ask();
  std::thread gone([&] { nodes_->calls().OnGone(*nodes_->directory().OnGone(1)); });
  const TakenNews had = TakeAllNews(nodes_->calls());
  gone.join();
  EXPECT_EQ(had.to_load.size(), experts_.size());
  EXPECT_EQ(nodes_->calls().counters().lost, 1u);
}

TEST_F(PeerCallsTest, ALinkThatTakesNothingCountsAsARefusal) {
  Open(1);
  nodes_->Hold(0, 1, experts_);
  nodes_->on_ask = [](LinkId, const std::vector<std::byte>&) {
    return Error(Code::kUnavailable, "gone");
  };
  Ask();
  EXPECT_EQ(TakeAllNews(nodes_->calls()).to_load.size(), experts_.size());
  EXPECT_EQ(nodes_->calls().counters().refused, 1u);
}

TEST_F(PeerCallsTest, WhatTheDiskFailsAtIsAskedOfAHolderOnceALayer) {
  Open(1);
  nodes_->Hold(0, 1, {experts_[0]});
  (void)nodes_->calls().Places();
  EXPECT_FALSE(nodes_->calls().AskInPlaceOfDisk(layer_->batch(), experts_[1])) << "nobody holds it";
  ASSERT_TRUE(nodes_->calls().AskInPlaceOfDisk(layer_->batch(), experts_[0]));
  EXPECT_FALSE(nodes_->calls().AskInPlaceOfDisk(layer_->batch(), experts_[0]));
  const TakenNews had = TakeAllNews(nodes_->calls());
  ASSERT_EQ(had.answered.size(), 1u);
  EXPECT_EQ(had.answered.at(experts_[0]), nodes_->Alone(*layer_, experts_[0]));
  EXPECT_EQ(nodes_->calls().counters().failed_loads, 1u);
  nodes_->calls().Forget();
  EXPECT_TRUE(nodes_->calls().AskInPlaceOfDisk(layer_->batch(), experts_[0])) << "another layer";
  (void)TakeAllNews(nodes_->calls());
}

TEST_F(PeerCallsTest, CountsWhatTheOwnUsersActivate) {
  Open(1);
  const ExpertDemand demands[] = {{.expert = 2, .tokens = 5}};
  ExpertBatch batch = layer_->batch();
  batch.demands = demands;
  nodes_->calls().OnAsked(batch, RowForm::kFloat);
  EXPECT_EQ(nodes_->calls().TakeActivity()[nodes_->shape().grid.Index({1, 2})], 5u);
}

}  // namespace
}  // namespace troupe
