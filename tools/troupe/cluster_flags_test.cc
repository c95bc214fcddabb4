#include "troupe/cluster_flags.h"

#include <fmt/core.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>
#include <string>

#include "troupe/cluster_metrics.h"
#include "troupe/serve_flags.h"

namespace troupe {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

std::string MistakeIn(std::vector<std::string> arguments) {
  arguments.insert(arguments.begin(), "m.gguf");
  auto flags = ServeFlags::Read(arguments);
  return (flags.ok() ? (*flags)->CheckUsage() : flags.status()).message();
}

TEST(ClusterFlags, WithoutPeersAServerIsOfNoCluster) {
  EXPECT_FALSE(ServeFlags::Read({"m.gguf"}).value()->cluster().any());
}

TEST(ClusterFlags, SayWhoTheNodesAreAndWhichOfThemThisIs) {
  const auto flags =
      ServeFlags::Read({"m.gguf", "--peers", "127.0.0.1:7001,127.0.0.1:7002", "--peer-address",
                        "127.0.0.1:7002", "--node", "b", "--cluster", "lab", "--placer", "eplb",
                        "--gather-s", "2", "--forget-s", "9"})
          .value();
  ASSERT_TRUE(flags->CheckUsage().ok());
  const ClusterOptions options = flags->cluster().Read().value();
  EXPECT_THAT(options.node.addresses, ElementsAre("127.0.0.1:7001", "127.0.0.1:7002"));
  EXPECT_EQ(options.address, "127.0.0.1:7002");
  EXPECT_EQ(options.transport.port, 7002);
  EXPECT_EQ(options.name, "b");
  EXPECT_EQ(options.cluster, "lab");
  EXPECT_EQ(options.node.planner.placer, "eplb");
  EXPECT_EQ(options.node.planner.gather, 2'000'000'000);
  EXPECT_EQ(options.node.planner.forget_after, 9'000'000'000);
}

TEST(ClusterFlags, AsTheIssueWritesThem) {
  const auto flags = ServeFlags::Read({"m.gguf", "--peers", "127.0.0.1,192.0.2.1", "--verify", "1%",
                                       "--peer-plain-text"})
                         .value();
  ASSERT_TRUE(flags->CheckUsage().ok());
  ClusterOptions options = flags->cluster().Read().value();
  EXPECT_THAT(options.node.addresses, ElementsAre("127.0.0.1:7070", "192.0.2.1:7070"));
  EXPECT_DOUBLE_EQ(options.verify, 0.01);
  EXPECT_EQ(options.address, "");
  ASSERT_TRUE(ListenAsOneOfTheList(options).ok());
  EXPECT_EQ(options.address, "127.0.0.1:7070");
  options.node.addresses = {"127.0.0.1:1", "127.0.0.1:2"};
  EXPECT_THAT(ListenAsOneOfTheList(options).message(), HasSubstr("several of them are this"));
  options.node.addresses = {"192.0.2.1:1"};
  EXPECT_THAT(ListenAsOneOfTheList(options).message(), HasSubstr("none of them is this"));
}

TEST(ClusterFlags, ByEtcdANodeListensWhereItReachesEtcdFrom) {
  const auto flags = ServeFlags::Read({"m.gguf", "--etcd", "127.0.0.1:2379,[::1]:2379"}).value();
  ASSERT_TRUE(flags->CheckUsage().ok());
  ClusterOptions options = flags->cluster().Read().value();
  EXPECT_THAT(options.node.addresses, testing::IsEmpty());
  EXPECT_THAT(options.etcd->endpoints, ElementsAre("127.0.0.1:2379", "[::1]:2379"));
  EXPECT_EQ(options.lease, 10'000'000'000);
  ASSERT_TRUE(ListenTowardsEtcd(options).ok());
  EXPECT_EQ(options.address, "127.0.0.1:7070");
  EXPECT_EQ(options.transport.port, 7070);
}

TEST(ClusterFlags, ANodeMayListenElsewhereThanWhereItsPeersReachIt) {
  const auto listens = [](std::vector<std::string> arguments) {
    arguments.insert(arguments.begin(), {"m.gguf", "--peer-plain-text"});
    const auto flags = ServeFlags::Read(arguments).value();
    EXPECT_TRUE(flags->CheckUsage().ok());
    ClusterOptions options = flags->cluster().Read().value();
    EXPECT_TRUE(!options.address.empty() || ListenTowardsEtcd(options).ok());
    return fmt::format("{} at {}:{}", options.address, options.transport.host,
                       options.transport.port);
  };
  EXPECT_EQ(listens({"--peers", "192.0.2.1:17070,192.0.2.2", "--peer-address", "192.0.2.1:17070",
                     "--peer-listen", "0.0.0.0:7070"}),
            "192.0.2.1:17070 at 0.0.0.0:7070");
  EXPECT_EQ(listens({"--peers", "box.lan:7001", "--peer-address", "box.lan:7001", "--peer-listen",
                     "[::]"}),
            "box.lan:7001 at :::7001");
  EXPECT_EQ(listens({"--etcd", "127.0.0.1:2379", "--peer-listen", "0.0.0.0"}),
            "127.0.0.1:7070 at 0.0.0.0:7070");
  EXPECT_EQ(listens({"--etcd", "127.0.0.1:2379", "--peer-listen", "0.0.0.0:7001"}),
            "127.0.0.1:7001 at 0.0.0.0:7001");
}

TEST(ClusterFlags, ANodeListensForOtherMachinesWhereItsOwnNameDoesNotLeadOnlyToItself) {
  for (const char* host : {"127.0.0.1", "localhost", "::1", "192.0.2.1", "0.0.0.0"}) {
    ClusterOptions options;
    options.transport.host = host;
    options.transport.allow_plain_text = true;
    ASSERT_TRUE(ListenForOtherMachines(options).ok());
    EXPECT_EQ(options.transport.host, host);
  }
}

TEST(ClusterFlags, PeersAnswerInEveryBitUnlessTheyAreToldOtherwise) {
  const auto answers = [](std::vector<std::string> more) {
    std::vector<std::string> arguments = {"m.gguf", "--peers", "127.0.0.1,127.0.0.2"};
    arguments.insert(arguments.end(), more.begin(), more.end());
    const auto flags = ServeFlags::Read(arguments).value();
    EXPECT_TRUE(flags->CheckUsage().ok());
    const RowForm form = flags->EngineWith(Bytes()).options().offload.peer_answers;
    EXPECT_EQ(flags->EngineWith(Bytes()).options().offload.exact(), form == RowForm::kFloat);
    return form;
  };
  EXPECT_EQ(answers({}), RowForm::kFloat);
  EXPECT_EQ(answers({"--peer-answers", "f32"}), RowForm::kFloat);
  EXPECT_EQ(answers({"--peer-answers", "bf16"}), RowForm::kBf16);
  EXPECT_EQ(answers({"--peer-answers", "q8"}), RowForm::kInt8);
}

TEST(ClusterFlags, WhatDoesNotFitTogetherIsNamed) {
  const std::pair<std::vector<std::string>, const char*> cases[] = {
      {{"--peer-address", "127.0.0.1:1"}, "--peers"},
      {{"--peer-listen", "0.0.0.0"}, "--peer-listen needs --etcd or --peers"},
      {{"--etcd", "127.0.0.1:1", "--peer-listen", "0.0.0.0:x"},
       "--peer-listen: '0.0.0.0:x', expected HOST or HOST:PORT"},
      {{"--etcd", "127.0.0.1:1", "--peer-address", "0.0.0.0"},
       "'0.0.0.0:7070' is no address that peers can dial; --peer-listen says where"},
      {{"--peers", "127.0.0.1", "--peer-address", "127.0.0.1", "--peer-listen", "0.0.0.0"},
       "'0.0.0.0': without TLS"},
      {{"--forget-s", "5"}, "--forget-s needs --etcd or --peers"},
      {{"--peers", "127.0.0.1", "--gather-s", "0"}, "--gather-s"},
      {{"--node", "a"}, "--node needs --etcd or --peers"},
      {{"--lease-s", "5"}, "--etcd"},
      {{"--peers", "127.0.0.1", "--new-cluster"}, "--etcd"},
      {{"--peers", "127.0.0.1", "--new-model"}, "--etcd"},
      {{"--etcd", "127.0.0.1:1", "--peers", "127.0.0.1:1"}, "exclude"},
      {{"--etcd", "127.0.0.1"}, "not HOST:PORT"},
      {{"--etcd", "127.0.0.1:1", "--cluster", "a/b"}, "--cluster"},
      {{"--etcd", "127.0.0.1:1", "--etcd-key", "k.pem"}, "--etcd-certificate"},
      {{"--peers", "127.0.0.1:1", "--peer-address", "127.0.0.1:2"}, "none of --peers"},
      {{"--peers", "127.0.0.1:1,127.0.0.1:1", "--peer-address", "127.0.0.1:1"}, "twice"},
      {{"--peers", "127.0.0.1:x", "--peer-address", "127.0.0.1:x"}, "127.0.0.1:x"},
      {{"--peers", "127.0.0.1,127.0.0.1:7070", "--peer-address", "127.0.0.1"}, "twice"},
      {{"--peers", "127.0.0.1", "--verify", "all"}, "'all', expected 0% to 100%"},
      {{"--peers", "127.0.0.1", "--verify", "101%"}, "101%"},
      {{"--peer-answers", "q8"}, "--peer-answers needs --etcd or --peers"},
      {{"--peers", "127.0.0.1", "--peer-answers", "q4"}, "--peer-answers"},
      {{"--peers", "127.0.0.1", "--peer-answers", "q8", "--quality", "exact"}, "--quality"},
      {{"--peers", "127.0.0.1:1", "--peer-address", "127.0.0.1:1", "--node", "two words"},
       "--node"},
      {{"--peers", "127.0.0.1:1", "--peer-address", "127.0.0.1:1", "--placer", "best"}, "--placer"},
      {{"--peers", "10.0.0.1:1", "--peer-address", "10.0.0.1:1"}, "10.0.0.1"}};
  for (const auto& [arguments, said] : cases) {
    EXPECT_THAT(MistakeIn(arguments), HasSubstr(said));
  }
}

TEST(ClusterMetrics, TellsOfPeersThatAreHereAndOfWhoAnswered) {
  ClusterState state{.epoch = 4, .peers = {{.name = "a", .here = true}, {.name = "b"}}};
  state.asked.answered = 7;
  state.asked.to_disk = 2;
  state.answered.busy = 3;
  state.answered.unsent = 5;
  state.certificate_expires = 1'700'000'000;
  state.asked.dropped = 6;
  state.asked.malformed = 8;
  state.distribution = {{.least_rows = 1, .rested = 9, .rests = true}, {.least_rows = 2}};
  const auto value = [&](std::string_view name, std::string_view label) {
    for (const ExtraMetric& one : MetricsOf(state)) {
      if (one.name != name) continue;
      if (label.empty() || one.labels.front().second == label) return one.value;
    }
    return -1.0;
  };
  EXPECT_EQ(value("troupe_cluster_peers", ""), 1);
  EXPECT_EQ(value("troupe_cluster_plan_epoch", ""), 4);
  EXPECT_EQ(value("troupe_peer_experts_total", "peer"), 7);
  EXPECT_EQ(value("troupe_peer_experts_total", "disk"), 2);
  EXPECT_EQ(value("troupe_host_calls_total", "busy"), 3);
  EXPECT_EQ(value("troupe_host_calls_total", "unsent"), 5);
  EXPECT_EQ(value("troupe_peer_answers_dropped_total", ""), 6);
  EXPECT_EQ(value("troupe_peer_answers_malformed_total", ""), 8);
  EXPECT_EQ(value("troupe_cluster_layers_total", "rested"), 9);
  EXPECT_EQ(value("troupe_cluster_sharing_rests", ""), 1);
  EXPECT_EQ(value("troupe_peer_certificate_expires_timestamp_seconds", ""), 1'700'000'000);
}

TEST(ClusterMetrics, TellsOfTheTrafficOfLinksAndOfAMigration) {
  ClusterState state{.peers = {{.name = "a", .here = true}, {.name = "b"}}};
  state.peers[0].bytes_sent = 70;
  state.peers[0].bytes_received = 9;
  state.peers[0].call_seconds = 2e-4;
  state.migration = {.nodes = {}, .experts = 40, .moved = 12};
  std::map<std::string, double> figures;
  for (const ExtraMetric& one : MetricsOf(state)) {
    std::string name(one.name);
    for (const auto& [key, label] : one.labels) name += " " + label;
    figures[name] = one.value;
  }
  EXPECT_EQ(figures.at("troupe_peer_link_bytes_total a sent"), 70);
  EXPECT_EQ(figures.at("troupe_peer_link_bytes_total a received"), 9);
  EXPECT_EQ(figures.at("troupe_peer_link_round_trip_seconds a"), 2e-4);
  EXPECT_FALSE(figures.contains("troupe_peer_link_bytes_total b sent")) << "it is away";
  EXPECT_EQ(figures.at("troupe_migration_experts planned"), 40);
  EXPECT_EQ(figures.at("troupe_migration_experts moved"), 12);
}

}  // namespace
}  // namespace troupe
