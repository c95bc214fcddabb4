#include "troupe/cluster_record.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace troupe {
namespace {

using testing::ContainsRegex;
using testing::HasSubstr;
using testing::Not;

ClusterState SomeState() {
  ClusterState state{.cluster = "lab", .name = "b", .address = "10.0.0.2:7070"};
  state.leader = "a";
  state.membership = MemberState::kMember;
  state.epoch = 71;
  state.planned = {{"a", 120}, {"b", 60}};
  state.held = 59;
  state.peers = {{.name = "a", .here = true, .round_trip_seconds = 2.4e-4, .held = 1},
                 {.name = "c"}};
  state.asked.calls = 40;
  state.asked.to_disk = 2;
  state.answered.busy = 7;
  state.events = {{.seconds_ago = 12.3, .text = "node c is gone"}};
  return state;
}

TEST(ClusterRecord, IsShownAsATableOfNodes) {
  const std::string table = ClusterTable("url", RecordOf(SomeState()).Dump()).value();
  EXPECT_THAT(table, HasSubstr("cluster lab, node b at 10.0.0.2:7070\n"));
  EXPECT_THAT(table, HasSubstr("a leads; by etcd: member; plan 71, being carried out here\n"));
  EXPECT_THAT(table, ContainsRegex("\na +120 +1 +0.24 ms\n"));
  EXPECT_THAT(table, ContainsRegex("\nb +60 +59 +-\n"));
  EXPECT_THAT(table, ContainsRegex("\nc +- +away +-\n"));
  EXPECT_THAT(table, HasSubstr("asked of peers: calls 40"));
  EXPECT_THAT(table, HasSubstr("by_disk 2"));
  EXPECT_THAT(table, HasSubstr("busy 7"));
  EXPECT_THAT(table, Not(ContainsRegex(" [a-z_]+ 0[ \n]"))) << "counts nothing";
  EXPECT_THAT(ClusterTable("url", RecordOf(ClusterState()).Dump()).value(),
              HasSubstr("\nasked of peers: nothing\nanswered to peers: nothing\n"));
}

TEST(ClusterRecord, SaysWherePeersAnswerInFewerBits) {
  ClusterState state = SomeState();
  EXPECT_THAT(ClusterTable("url", RecordOf(state).Dump()).value(), Not(HasSubstr("not exact")));
  state.answers = RowForm::kInt8;
  EXPECT_THAT(ClusterTable("url", RecordOf(state).Dump()).value(),
              HasSubstr("a leads; by etcd: member; peers answer in 8-bit codes: not exact; plan"));
}

TEST(ClusterRecord, SaysWhoIsThrownOutAndHowToLetItInAgain) {
  ClusterState state = SomeState();
  EXPECT_THAT(ClusterTable("url", RecordOf(state).Dump()).value(), Not(HasSubstr("thrown out")));
  state.thrown_out = {{.name = "c", .address = "10.0.0.3:7070", .id = {3, 4}}};
  EXPECT_THAT(
      ClusterTable("url", RecordOf(state).Dump()).value(),
      HasSubstr("\nc at 10.0.0.3:7070 is thrown out: wrong rows of " + ToString(ExpertId{3, 4}) +
                "; `troupe cluster readmit` lets it in again\n"));
}

TEST(ClusterRecord, ExplainsWhatStillHoldsUnderWhatHasHappened) {
  ClusterState state = SomeState();
  EXPECT_EQ(ClusterEvents("url", RecordOf(state).Dump()).value(),
            "      12.3 s ago  node c is gone\n");
  state.unreachable = {{.address = "10.0.0.3:7070", .why = "10.0.0.3:7070: connection refused"}};
  state.look = {.adopted = false,
                .why = "another one does not pay: …",
                .unwritten = "it is too large",
                .weighed = true};
  state.looked_seconds_ago = 7;
  state.distribution = {{.least_rows = 1, .shared = 812, .local = 20, .gain = 2.5},
                        {.least_rows = 8, .rested = 3, .gain = 0.5, .rests = true},
                        {.least_rows = 64}};
  state.judged = {{.layer = 3,
                   .rows = 1,
                   .misses = 4,
                   .elsewhere = 2,
                   .all_local_seconds = 4e-3,
                   .planned_seconds = 2e-3,
                   .took_seconds = 2.5e-3}};
  const std::string text = ClusterEvents("url", RecordOf(state).Dump()).value();
  EXPECT_THAT(text, HasSubstr("\n\nno link to 10.0.0.3:7070: connection refused\n"));
  EXPECT_THAT(
      text,
      HasSubstr("7.0 s ago it looked at plans: another one does not pay: …\nit is too large\n"));
  EXPECT_THAT(text, HasSubstr("812 layers shared with peers, 20 left to the own disk"));
  EXPECT_THAT(text, HasSubstr("sharing is 0.50 times as fast, and rests now"));
  EXPECT_THAT(text, Not(HasSubstr("64 rows or more")));
  EXPECT_THAT(text, ContainsRegex("\n +3 +1 +4 +2 +4.00 ms +2.00 ms +2.50 ms\n"));
}

TEST(ClusterRecord, TellsOfLinksAndOfAMigrationUnderWay) {
  ClusterState state = SomeState();
  EXPECT_TRUE(RecordOf(state).Dump().find(R"("migration":null)") != std::string::npos);
  state.peers[0].bytes_sent = 70;
  state.peers[0].bytes_received = 9;
  state.peers[0].call_seconds = 2.5e-4;
  state.peers[0].bytes_per_second = 5e7;
  state.migration = {.epoch = 71,
                     .nodes = {{"a", 30, 12}, {"b", 10, 0}},
                     .experts = 40,
                     .moved = 12,
                     .bytes = 4 << 20,
                     .bytes_moved = 1 << 20,
                     .seconds = 6,
                     .quiet_seconds = 0.5};
  std::string record = RecordOf(state).Dump();
  EXPECT_THAT(record, HasSubstr(R"("held":1,"sent":70,"received":9,"call_s":)"));
  EXPECT_THAT(record, HasSubstr(R"("epoch":71,"experts":40,"moved":12,"bytes":4194304,)"
                                R"("bytes_moved":1048576,)"));
  EXPECT_THAT(record, HasSubstr(R"({"name":"a","experts":30,"moved":12})"));
  EXPECT_THAT(ClusterTable("url", record).value(),
              HasSubstr("\nmigration: 12 of 40 experts have come, 1.0 MiB of 4.0 MiB; it is not "
                        "known how long it takes\n"));
  state.migration.seconds_left = 18.4;
  EXPECT_THAT(ClusterTable("url", RecordOf(state).Dump()).value(),
              HasSubstr("; about 18 s left\n"));
  state.migration.moved = 40;
  EXPECT_THAT(ClusterTable("url", RecordOf(state).Dump()).value(), Not(HasSubstr("migration")));
}

TEST(ClusterRecord, SaysWhenNobodyLeadsAndThereIsNoPlan) {
  ClusterState state = SomeState();
  state.leader = "";
  state.epoch = 0;
  state.membership.reset();
  EXPECT_THAT(ClusterTable("url", RecordOf(state).Dump()).value(),
              HasSubstr("\nnobody leads; no plan yet\n"));
}

TEST(ClusterHoldings, AreShownByLayerWithWhatIsToComeAndToGo) {
  const ClusterHoldings holdings{
      .epoch = 7,
      .grid = {.layers = 2, .experts = 8},
      .first_layer = 1,
      .nodes = {{.name = "a", .here = true, .planned = {{}, {0, 1, 2, 5}}, .held = {{}, {0, 1, 4}}},
                {.name = "b", .here = false, .planned = {{}, {3, 4}}, .held = {{}, {}}}}};
  EXPECT_EQ(HoldingsTable("url", RecordOf(holdings).Dump()).value(),
            "plan 7: 2 layers of 8 experts\n"
            "\nlayer 1\n"
            "  a: 0-2, 5; to come: 2, 5; to go: 4\n"
            "  b: 3, 4; it is away\n"
            "  on disks alone: 2, 3, 5-7\n");
}

TEST(ClusterHoldings, OfAnotherShapeAreNamedByTheirPlace) {
  EXPECT_THAT(HoldingsTable("http://a",
                            R"({"epoch":1,"layers":1,"experts":2,"first_layer":0,)"
                            R"("nodes":[{"name":"a","here":true,"planned":[[5]],"held":[[]]}]})")
                  .status()
                  .message(),
              HasSubstr("http://a: "));
}

TEST(ClusterRecord, EventsComeWithTheirAge) {
  EXPECT_EQ(ClusterEvents("url", RecordOf(SomeState()).Dump()).value(),
            "      12.3 s ago  node c is gone\n");
}

TEST(ClusterRecord, NamesOfOthersDoNotSteerATerminal) {
  ClusterState state = SomeState();
  state.peers[1].name = "c\x1b[2J";
  state.events[0].text = "node c\x1b[2J is gone";
  const std::string record = RecordOf(state).Dump();
  EXPECT_THAT(ClusterTable("url", record).value(), Not(HasSubstr("\x1b")));
  EXPECT_THAT(ClusterEvents("url", record).value(), Not(HasSubstr("\x1b")));
}

TEST(ClusterRecord, WhatIsNoRecordIsNamedByItsPlace) {
  EXPECT_THAT(ClusterTable("http://a", R"({"cluster":5})").status().message(),
              HasSubstr("http://a: "));
}

}  // namespace
}  // namespace troupe
