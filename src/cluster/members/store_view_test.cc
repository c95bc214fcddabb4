#include "cluster/members/store_view.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace troupe {
namespace {

KvEntry At(std::string key, KvRevision modified) {
  return {.key = std::move(key), .value = "v", .created = modified, .modified = modified};
}

TEST(StoreView, AReadReplacesWhatWasKnown) {
  StoreView view;
  EXPECT_EQ(view.TakeRead(5, {At("a", 3), At("b", 5)}, 0), StoreView::Took::kNews);
  EXPECT_EQ(view.TakeRead(9, {At("b", 5)}, 5), StoreView::Took::kNews);
  EXPECT_EQ(view.Find("a"), nullptr);
  EXPECT_EQ(view.Find("b")->modified, 5);
  EXPECT_EQ(view.revision(), 9);
}

TEST(StoreView, AReadOfWhatIsKnownIsNoNews) {
  StoreView view;
  EXPECT_EQ(view.TakeRead(5, {At("a", 3)}, 0), StoreView::Took::kNews);
  EXPECT_TRUE(view.TakeChanges({{.entry = At("b", 8)}}));
  EXPECT_EQ(view.TakeRead(9, {At("a", 3), At("b", 8)}, 8), StoreView::Took::kNothingNew);
  EXPECT_EQ(view.revision(), 9);
}

TEST(StoreView, AReadThatTheWatchHasOvertakenIsLeftOut) {
  StoreView view;
  EXPECT_EQ(view.TakeRead(5, {At("a", 3)}, 0), StoreView::Took::kNews);
  EXPECT_TRUE(view.TakeChanges({{.entry = At("b", 8)}}));
  EXPECT_EQ(view.TakeRead(6, {At("a", 3)}, 5), StoreView::Took::kOvertaken);
  EXPECT_NE(view.Find("b"), nullptr);
  EXPECT_EQ(view.revision(), 8);
}

TEST(StoreView, AReadFromBeforeItWasAskedShowsAStoreThatWentBack) {
  StoreView view;
  EXPECT_EQ(view.TakeRead(50, {At("a", 40), At("b", 50)}, 0), StoreView::Took::kNews);
  EXPECT_EQ(view.TakeRead(20, {At("a", 11)}, 50), StoreView::Took::kWentBack);
  EXPECT_EQ(view.revision(), 20);
  EXPECT_EQ(view.Find("b"), nullptr);
  EXPECT_TRUE(view.TakeChanges({{.entry = At("c", 21)}}));
  EXPECT_NE(view.Find("c"), nullptr);
}

TEST(StoreView, AWatchTellsNothingThatAReadHasShown) {
  StoreView view;
  EXPECT_EQ(view.TakeRead(9, {At("a", 9)}, 0), StoreView::Took::kNews);
  EXPECT_FALSE(view.TakeChanges({{.entry = At("a", 7)}, {.entry = At("b", 8), .deleted = true}}));
  EXPECT_EQ(view.Find("a")->modified, 9);
  EXPECT_EQ(view.Find("b"), nullptr);
}

TEST(StoreView, TakesAllChangesOfOneRevision) {
  StoreView view;
  EXPECT_EQ(view.TakeRead(9, {At("a", 2), At("b", 3)}, 0), StoreView::Took::kNews);
  EXPECT_TRUE(view.TakeChanges({{.entry = {.key = "a", .modified = 10}, .deleted = true},
                                {.entry = {.key = "b", .modified = 10}, .deleted = true},
                                {.entry = At("c", 10)}}));
  EXPECT_EQ(view.entries().size(), 1u);
  EXPECT_NE(view.Find("c"), nullptr);
}

}  // namespace
}  // namespace troupe
