// What of the messages needs no etcd; the rest is shown by etcd_store_test.cc on a real one.
#include "cluster/etcd/etcd_messages.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace troupe {
namespace {

using ::testing::HasSubstr;

KvFault FaultIn(const KvEvent& event) {
  const auto* failure = std::get_if<KvFailure>(&event.what);
  EXPECT_NE(failure, nullptr);
  return failure == nullptr ? KvFault::kUnavailable : failure->fault;
}

TEST(EtcdMessages, APrefixEndsWhereItsLastByteIsOneGreater) {
  EXPECT_EQ(EndOfPrefix("/troupe/lab/"), "/troupe/lab0");
  EXPECT_EQ(EndOfPrefix("a\xff\xff"), "b");
  EXPECT_EQ(EndOfPrefix("\xff"), std::string(1, '\0'));
  EXPECT_EQ(EndOfPrefix(""), std::string(1, '\0'));
}

TEST(EtcdMessages, BytesAreThoseOfEtcdsFormat) {
  // Fields 1 (key) and 2 (range_end), both of type 2.
  EXPECT_EQ(ToEtcd(ReadPrefix{.prefix = "a/"}).bytes,
            "\x0a\x02"
            "a/"
            "\x12\x02"
            "a0");
  // Field 1 (TTL), in whole seconds.
  EXPECT_EQ(ToEtcd(GrantLease{.ttl = 2'000'000'001}).bytes, "\x08\x03");
  // create_request (1) with key (1), range_end (2), start_revision (3).
  EXPECT_EQ(ToEtcd(WatchPrefix{.prefix = "a/", .from = 7}).bytes,
            "\x0a\x0a"
            "\x0a\x02"
            "a/"
            "\x12\x02"
            "a0"
            "\x18\x07");
  // compare (1) of MOD (target 2: 2) with key (3) and mod_revision (6), then (2) a put (2).
  EXPECT_EQ(
      ToEtcd(KvTransaction{
                 .compares = {{.key = "k", .what = KvCompare::What::kModified, .revision = 5}},
                 .puts = {{.key = "k", .value = "v", .lease = 9}}})
          .bytes,
      "\x0a\x07"
      "\x10\x02"
      "\x1a\x01"
      "k"
      "\x30\x05"
      "\x12\x0a"
      "\x12\x08"
      "\x0a\x01"
      "k"
      "\x12\x01"
      "v"
      "\x18\x09");
}

TEST(EtcdMessages, AnAnswerThatIsNoneIsAFailure) {
  for (const KvRequest& request :
       {KvRequest(GrantLease{}), KvRequest(KeepLease{}), KvRequest(RevokeLease{}),
        KvRequest(KvTransaction{}), KvRequest(ReadPrefix{}), KvRequest(WatchPrefix{})}) {
    EXPECT_EQ(FaultIn(ToEtcd(request).read("\x0a\x7f")), KvFault::kRefused);
  }
}

TEST(EtcdMessages, ALeaseKeptForNoTimeHasExpired) {
  const EtcdRequest keep = ToEtcd(KeepLease{7});
  EXPECT_EQ(FaultIn(keep.read("\x10\x07")), KvFault::kLeaseExpired);
  EXPECT_EQ(std::get<LeaseKept>(keep.read("\x18\x02").what).ttl, 2'000'000'000);
}

TEST(EtcdMessages, AWatchEndsWithItsReason) {
  const EtcdRequest watch = ToEtcd(WatchPrefix{.prefix = "a/", .from = 7});
  EXPECT_TRUE(std::get<WatchChanges>(watch.read("\x18\x01").what).changes.empty()) << "created";
  EXPECT_EQ(FaultIn(watch.read("\x20\x01\x28\x05")), KvFault::kCompacted);
  const KvEvent ended = watch.read(
      "\x20\x01\x32\x03"
      "why");
  EXPECT_EQ(FaultIn(ended), KvFault::kUnavailable);
  EXPECT_THAT(std::get<KvFailure>(ended.what).message, HasSubstr("why"));
}

TEST(EtcdMessages, AReasonOfSeveralLinesIsToldInOne) {
  const KvEvent ended = ToEtcd(WatchPrefix{.prefix = "a/"})
                            .read(
                                "\x20\x01\x32\x03"
                                "a\nb");
  EXPECT_THAT(std::get<KvFailure>(ended.what).message, HasSubstr("a b"));
}

TEST(EtcdMessages, ALeaseLongerThanAnyClockIsJustLong) {
  const std::string most = "\xff\xff\xff\xff\xff\xff\xff\xff\x7f";  // 2^63 - 1
  const Nanos kept = std::get<LeaseKept>(ToEtcd(KeepLease{7}).read("\x18" + most).what).ttl;
  EXPECT_GT(kept, 1'000'000 * Nanos{1'000'000'000});
  const Nanos granted = std::get<LeaseGranted>(ToEtcd(GrantLease{}).read("\x18" + most).what).ttl;
  EXPECT_EQ(granted, kept);
}

TEST(EtcdMessages, AnAnswerForAnotherKeyIsNone) {
  const EtcdRequest ask = ToEtcd(KvTransaction{.gets = {"a"}});
  const KvEvent done = ask.read(
      "\x10\x01\x1a\x07\x0a\x05\x12\x03\x0a\x01"
      "b");
  EXPECT_EQ(std::get<TransactionDone>(done.what).entries.at(0), KvEntry{.key = "a"});
}

TEST(EtcdMessages, ATransactionsAnswerHasAnEntryForEachKeyThatWasAskedFor) {
  const EtcdRequest ask = ToEtcd(KvTransaction{.gets = {"a", "b"}, .else_gets = {"c"}});
  // succeeded (2); responses (3): a put, an empty range, and a range with one key (1: "b").
  const auto held =
      std::get<TransactionDone>(ask.read(std::string("\x10\x01\x1a\x02\x12\x00\x1a\x02\x0a\x00"
                                                     "\x1a\x07\x0a\x05\x12\x03\x0a\x01"
                                                     "b",
                                                     19))
                                    .what);
  EXPECT_TRUE(held.held);
  ASSERT_EQ(held.entries.size(), 2u);
  EXPECT_EQ(held.entries[0], KvEntry{.key = "a"});
  EXPECT_EQ(held.entries[1], KvEntry{.key = "b"});
  const auto failed = std::get<TransactionDone>(ask.read("").what);
  EXPECT_FALSE(failed.held);
  EXPECT_EQ(failed.entries.at(0), KvEntry{.key = "c"});
}

}  // namespace
}  // namespace troupe
