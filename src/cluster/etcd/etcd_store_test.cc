// The port on a real etcd.
#include "cluster/etcd/etcd_store.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "cluster/etcd/etcd_server_for_test.h"

namespace troupe {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

constexpr Nanos kASecond = 1'000'000'000;

class EtcdStoreTest : public testing::Test {
 protected:
  static void SetUpTestSuite() {
    if (EtcdServer::IsInstalled()) server_ = new EtcdServer;
  }
  static void TearDownTestSuite() { delete std::exchange(server_, nullptr); }
  void SetUp() override {
    if (server_ == nullptr) GTEST_SKIP() << "no etcd: install etcd-server and etcd-client";
  }

  // Unlike those of other tests.
  static std::string Prefix() {
    return std::string("/") + testing::UnitTest::GetInstance()->current_test_info()->name() + "/";
  }

  static EtcdServer* server_;
};
EtcdServer* EtcdStoreTest::server_ = nullptr;

template <typename What>
What As(const KvEvent& event) {
  if (const auto* what = std::get_if<What>(&event.what)) return *what;
  const auto* failure = std::get_if<KvFailure>(&event.what);
  ADD_FAILURE() << (failure == nullptr ? "another answer" : failure->message);
  return {};
}

TEST_F(EtcdStoreTest, ATransactionComparesPutsDeletesAndGets) {
  AskingClient client(server_->options());
  const std::string a = Prefix() + "a", b = Prefix() + "b";
  const KvEvent event = client.Ask(
      KvTransaction{.compares = {{.key = a, .revision = 0},
                                 {.key = a, .what = KvCompare::What::kModified, .revision = 0}},
                    .puts = {{.key = a, .value = "1"}},
                    .gets = {b, a}});
  const auto created = As<TransactionDone>(event);
  ASSERT_TRUE(created.held);
  ASSERT_EQ(created.entries.size(), 2u);
  EXPECT_EQ(created.entries[0], KvEntry{.key = b});
  EXPECT_EQ(
      created.entries[1],
      (KvEntry{.key = a, .value = "1", .created = event.revision, .modified = event.revision}));
  const auto again =
      As<TransactionDone>(client.Ask(KvTransaction{.compares = {{.key = a, .revision = 0}},
                                                   .puts = {{.key = a, .value = "2"}},
                                                   .gets = {b},
                                                   .else_gets = {a}}));
  EXPECT_FALSE(again.held);
  EXPECT_THAT(again.entries, ElementsAre(created.entries[1]));
  const auto gone = As<TransactionDone>(client.Ask(
      KvTransaction{.compares = {{.key = a, .what = KvCompare::What::kValue, .value = "1"}},
                    .puts = {{.key = b, .value = std::string("\0\xff", 2)}},
                    .deletes = {a}}));
  EXPECT_TRUE(gone.held);
  const KvEvent read = client.Ask(ReadPrefix{.prefix = Prefix()});
  ASSERT_EQ(As<PrefixRead>(read).entries.size(), 1u);
  EXPECT_EQ(As<PrefixRead>(read).entries[0].value, std::string("\0\xff", 2));
  EXPECT_EQ(read.revision, event.revision + 1);
}

TEST_F(EtcdStoreTest, ALeaseThatIsNotKeptTakesItsKeysWithIt) {
  AskingClient client(server_->options());
  const auto granted = As<LeaseGranted>(client.Ask(GrantLease{.ttl = kASecond}));
  EXPECT_EQ(granted.ttl, kASecond);
  const std::string a = Prefix() + "a";
  const KvEvent put =
      client.Ask(KvTransaction{.puts = {{.key = a, .value = "1", .lease = granted.lease}}});
  ASSERT_TRUE(As<TransactionDone>(put).held);
  EXPECT_EQ(As<LeaseKept>(client.Ask(KeepLease{granted.lease})).ttl, kASecond);
  const KvAsk watch = client.Begin(WatchPrefix{.prefix = Prefix(), .from = put.revision + 1});
  const auto changes = As<WatchChanges>(client.Next(watch)).changes;
  ASSERT_EQ(changes.size(), 1u);
  EXPECT_TRUE(changes[0].deleted);
  EXPECT_EQ(changes[0].entry.key, a);
  EXPECT_EQ(As<KvFailure>(client.Ask(KeepLease{granted.lease})).fault, KvFault::kLeaseExpired);
  EXPECT_EQ(As<KvFailure>(client.Ask(RevokeLease{granted.lease})).fault, KvFault::kLeaseExpired);
  const KvEvent late =
      client.Ask(KvTransaction{.puts = {{.key = a, .value = "2", .lease = granted.lease}}});
  EXPECT_EQ(As<KvFailure>(late).fault, KvFault::kLeaseExpired);
}

TEST_F(EtcdStoreTest, ARevokedLeaseTakesItsKeysAtOnce) {
  AskingClient client(server_->options());
  const KvLease lease = As<LeaseGranted>(client.Ask(GrantLease{.ttl = 60 * kASecond})).lease;
  client.Ask(KvTransaction{.puts = {{.key = Prefix() + "a", .value = "1", .lease = lease}}});
  EXPECT_EQ(As<PrefixRead>(client.Ask(ReadPrefix{.prefix = Prefix()})).entries.at(0).lease, lease);
  As<LeaseRevoked>(client.Ask(RevokeLease{lease}));
  EXPECT_TRUE(As<PrefixRead>(client.Ask(ReadPrefix{.prefix = Prefix()})).entries.empty());
}

TEST_F(EtcdStoreTest, AWatchTellsWhatHasHappenedSinceItsRevisionAndWhatHappensThen) {
  AskingClient client(server_->options());
  const std::string a = Prefix() + "a";
  const KvEvent first = client.Ask(KvTransaction{.puts = {{.key = a, .value = "1"}}});
  client.Ask(KvTransaction{.puts = {{.key = "/elsewhere", .value = "1"}}});
  const KvAsk watch = client.Begin(WatchPrefix{.prefix = Prefix(), .from = first.revision});
  const auto before = As<WatchChanges>(client.Next(watch)).changes;
  ASSERT_EQ(before.size(), 1u);
  EXPECT_EQ(before[0].entry.value, "1");
  client.Ask(KvTransaction{.puts = {{.key = a, .value = "2"}}});
  EXPECT_EQ(As<WatchChanges>(client.Next(watch)).changes.at(0).entry.value, "2");
  client.Begin(EndWatch{watch});
  client.Ask(KvTransaction{.puts = {{.key = a, .value = "3"}}});
  EXPECT_EQ(As<KvFailure>(client.Next(watch, 0.3)).message, "nothing came");
}

TEST_F(EtcdStoreTest, AWatchFromACompactedRevisionIsRefused) {
  AskingClient client(server_->options());
  const std::string a = Prefix() + "a";
  const KvEvent first = client.Ask(KvTransaction{.puts = {{.key = a, .value = "1"}}});
  const KvEvent second = client.Ask(KvTransaction{.puts = {{.key = a, .value = "2"}}});
  server_->Control({"compact", std::to_string(second.revision)});
  const KvEvent refused = client.Ask(WatchPrefix{.prefix = Prefix(), .from = first.revision});
  EXPECT_EQ(As<KvFailure>(refused).fault, KvFault::kCompacted);
}

TEST_F(EtcdStoreTest, WhereNobodyAnswersTheNextEndpointIsAsked) {
  EtcdOptions options = server_->options();
  options.endpoints.insert(options.endpoints.begin(),
                           "127.0.0.1:" + std::to_string(FreePortForTest()));
  AskingClient client(options);
  const auto failure = As<KvFailure>(client.Ask(ReadPrefix{.prefix = Prefix()}));
  EXPECT_EQ(failure.fault, KvFault::kUnavailable);
  EXPECT_THAT(failure.message, HasSubstr("etcd: "));
  As<PrefixRead>(client.Ask(ReadPrefix{.prefix = Prefix()}));
}

TEST_F(EtcdStoreTest, AStoppedEtcdIsAFailureAfterTheTimeout) {
  EtcdOptions options = server_->options();
  options.timeout = kASecond / 2;
  AskingClient client(options);
  As<PrefixRead>(client.Ask(ReadPrefix{.prefix = Prefix()}));
  server_->Stop();
  EXPECT_EQ(As<KvFailure>(client.Ask(ReadPrefix{.prefix = Prefix()})).fault, KvFault::kUnavailable);
  EXPECT_EQ(As<KvFailure>(client.Ask(KeepLease{1})).fault, KvFault::kUnavailable);
  server_->Continue();
  KvEvent read;
  for (int attempt = 0; attempt < 20 && !std::holds_alternative<PrefixRead>(read.what); ++attempt) {
    read = client.Ask(ReadPrefix{.prefix = Prefix()});
  }
  As<PrefixRead>(read);
}

TEST_F(EtcdStoreTest, CanBeDestroyedWhileAsksAreUnderWay) {
  EtcdOptions options = server_->options();
  options.timeout = 3600 * kASecond;  // waiting for it would exceed any test's time
  server_->Stop();
  {
    AskingClient client(options);
    client.Begin(ReadPrefix{.prefix = Prefix()});
    client.Begin(KeepLease{1});
    client.Begin(WatchPrefix{.prefix = Prefix(), .from = 1});
  }
  server_->Continue();
}

TEST_F(EtcdStoreTest, AnEtcdThatStartsAgainEndsWatchesAndIsFound) {
  EtcdServer server;
  AskingClient client(server.options());
  const KvEvent put = client.Ask(KvTransaction{.puts = {{.key = "/a", .value = "1"}}});
  const KvAsk watch = client.Begin(WatchPrefix{.prefix = "/", .from = put.revision});
  As<WatchChanges>(client.Next(watch));
  server.Kill();
  EXPECT_EQ(As<KvFailure>(client.Next(watch)).fault, KvFault::kUnavailable);
  EXPECT_EQ(As<KvFailure>(client.Ask(ReadPrefix{.prefix = "/"})).fault, KvFault::kUnavailable);
  server.Start();
  KvEvent read{.what = KvFailure{}};
  for (int attempt = 0; attempt < 100 && std::holds_alternative<KvFailure>(read.what); ++attempt) {
    std::this_thread::sleep_for(std::chrono::milliseconds(50));
    read = client.Ask(ReadPrefix{.prefix = "/"});
  }
  EXPECT_EQ(As<PrefixRead>(read).entries.at(0).value, "1");
}

// A certificate for `name` in folder/NAME.pem with its key in NAME.key, signed by `authority`; by
// itself if that is `name`.
void MakeCertificate(const TempFolder& folder, const std::string& name,
                     const std::string& authority) {
  std::vector<std::string> command = {"openssl",
                                      "req",
                                      "-x509",
                                      "-newkey",
                                      "ec",
                                      "-pkeyopt",
                                      "ec_paramgen_curve:prime256v1",
                                      "-nodes",
                                      "-days",
                                      "2",
                                      "-subj",
                                      "/CN=" + name,
                                      "-keyout",
                                      folder.PathOf(name + ".key"),
                                      "-out",
                                      folder.PathOf(name + ".pem"),
                                      "-addext",
                                      "subjectAltName=IP:127.0.0.1"};
  if (authority != name) {
    command.insert(command.end(),
                   {"-CA", folder.PathOf(authority + ".pem"), "-CAkey",
                    folder.PathOf(authority + ".key"), "-addext", "basicConstraints=CA:FALSE"});
  }
  ASSERT_TRUE(RunForTest(std::move(command), folder.PathOf("openssl.log")))
      << folder.Read("openssl.log");
}

TEST_F(EtcdStoreTest, TlsLetsInWhoHasACertificateAndTrustsOnlyTheAuthority) {
  const TempFolder folder;
  for (const char* name : {"authority", "server", "client"}) {
    MakeCertificate(folder, name, "authority");
  }
  MakeCertificate(folder, "stranger", "stranger");
  const EtcdTls tls = {.authority = folder.PathOf("authority.pem"),
                       .certificate = folder.PathOf("client.pem"),
                       .key = folder.PathOf("client.key")};
  EtcdServer server(tls, {"--client-cert-auth", "--trusted-ca-file", tls.authority, "--cert-file",
                          folder.PathOf("server.pem"), "--key-file", folder.PathOf("server.key")});
  EtcdOptions options = server.options();
  AskingClient client(options);
  As<PrefixRead>(client.Ask(ReadPrefix{.prefix = "/"}));

  options.tls = {.authority = tls.authority};
  AskingClient nameless(options);
  EXPECT_EQ(As<KvFailure>(nameless.Ask(ReadPrefix{.prefix = "/"})).fault, KvFault::kUnavailable);
  options.tls = tls;
  options.tls.authority = folder.PathOf("stranger.pem");
  AskingClient distrusting(options);
  EXPECT_EQ(As<KvFailure>(distrusting.Ask(ReadPrefix{.prefix = "/"})).fault, KvFault::kDistrusted);
  options.tls = {};
  AskingClient plain(options);
  EXPECT_EQ(As<KvFailure>(plain.Ask(ReadPrefix{.prefix = "/"})).fault, KvFault::kUnavailable);
}

}  // namespace
}  // namespace troupe
