#include "cluster/members/fake_kv_state_for_test.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace troupe {
namespace {

using ::testing::ElementsAre;
using ::testing::Field;
using ::testing::IsEmpty;

KvLease GrantedLease(FakeKvState& state, Nanos now) {
  return std::get<LeaseGranted>(state.Answer(1, GrantLease{.ttl = 10 * kFakeSecond}, now).what)
      .lease;
}

bool DoesHold(FakeKvState& state, KvTransaction transaction) {
  return std::get<TransactionDone>(state.Answer(1, std::move(transaction), 0).what).held;
}

TEST(FakeKvState, KeysGoWithTheirLeaseUnlessItIsKept) {
  FakeKvState state;
  const KvLease lease = GrantedLease(state, 0);
  ASSERT_TRUE(DoesHold(state, {.puts = {{.key = "a", .value = "1", .lease = lease}}}));
  state.Answer(2, KeepLease{lease}, 8 * kFakeSecond);
  state.ExpireLeases(17 * kFakeSecond);
  EXPECT_NE(state.Find("a"), nullptr);
  state.ExpireLeases(18 * kFakeSecond);
  EXPECT_EQ(state.Find("a"), nullptr);
  const KvEvent kept = state.Answer(3, KeepLease{lease}, 18 * kFakeSecond);
  EXPECT_EQ(std::get<KvFailure>(kept.what).fault, KvFault::kLeaseExpired);
}

TEST(FakeKvState, ATransactionWhoseComparisonFailsChangesNothing) {
  FakeKvState state;
  ASSERT_TRUE(DoesHold(
      state, {.compares = {{.key = "a", .revision = 0}}, .puts = {{.key = "a", .value = "1"}}}));
  const KvRevision after = state.revision();
  EXPECT_FALSE(DoesHold(
      state, {.compares = {{.key = "a", .revision = 0}}, .puts = {{.key = "a", .value = "2"}}}));
  EXPECT_FALSE(
      DoesHold(state, {.compares = {{.key = "a", .what = KvCompare::What::kValue, .value = "2"}},
                       .deletes = {"a"}}));
  EXPECT_EQ(state.revision(), after);
  EXPECT_EQ(state.Find("a")->value, "1");
  EXPECT_TRUE(DoesHold(
      state, {.compares = {{.key = "a", .what = KvCompare::What::kModified, .revision = after}},
              .deletes = {"a"}}));
  EXPECT_EQ(state.Find("a"), nullptr);
}

TEST(FakeKvState, HistoryHasEachChangeOfThePrefixUntilItIsCompacted) {
  FakeKvState state;
  ASSERT_TRUE(
      DoesHold(state, {.puts = {{.key = "x/a", .value = "1"}, {.key = "y", .value = "1"}}}));
  const KvRevision first = state.revision();
  ASSERT_TRUE(DoesHold(state, {.puts = {{.key = "x/a", .value = "2"}}}));
  const std::vector<KvChange> changes = state.ChangesFrom(first, "x/").value();
  ASSERT_EQ(changes.size(), 2u);
  EXPECT_EQ(changes[1].entry.created, first);
  EXPECT_EQ(changes[1].entry.modified, first + 1);
  state.Compact();
  EXPECT_FALSE(state.ChangesFrom(first, "x/").has_value());
  EXPECT_THAT(state.ChangesFrom(state.revision() + 1, "x/").value(), IsEmpty());
}

TEST(FakeKvState, ReadsOfAPrefixAreInTheOrderOfKeys) {
  FakeKvState state;
  ASSERT_TRUE(DoesHold(state, {.puts = {{.key = "x/b"}, {.key = "x/a"}, {.key = "y"}}}));
  const KvEvent read = state.Answer(1, ReadPrefix{.prefix = "x/"}, 0);
  EXPECT_THAT(std::get<PrefixRead>(read.what).entries,
              ElementsAre(Field(&KvEntry::key, "x/a"), Field(&KvEntry::key, "x/b")));
  EXPECT_EQ(read.revision, state.revision());
}

}  // namespace
}  // namespace troupe
