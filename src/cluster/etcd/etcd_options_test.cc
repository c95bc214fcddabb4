#include "cluster/face/etcd_options.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "cluster/etcd/etcd_store.h"
#include "testing/temp_folder.h"

namespace troupe {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

TEST(EtcdEndpoints, AreHostsAndPortsWithCommasBetween) {
  EXPECT_THAT(ParseEndpoints("a:2379").value(), ElementsAre("a:2379"));
  EXPECT_THAT(ParseEndpoints("10.0.0.1:1,[::1]:65535").value(),
              ElementsAre("10.0.0.1:1", "[::1]:65535"));
  for (const char* wrong : {"", "a", "a:", ":2379", "a:0", "a:65536", "a:23x", "a:1,", "a:1, b:2",
                            "http://a:2379", "::1:2379"}) {
    EXPECT_FALSE(ParseEndpoints(wrong).ok()) << wrong;
  }
  EXPECT_THAT(ParseEndpoints("a:1,b").status().message(), HasSubstr("'b' is not HOST:PORT"));
}

TEST(EtcdTls, FilesThatAreMissingOrNoPemAreSaid) {
  const TempFolder folder;
  const std::string text = folder.Write("text", "no certificate");
  const auto message = [](const EtcdTls& tls) {
    const auto store =
        EtcdStore::Open({.endpoints = {"localhost:1"}, .tls = tls}, [](const KvEvent&) {});
    return store.status().message();
  };
  EXPECT_THAT(message({.authority = folder.PathOf("none")}), HasSubstr("none: cannot be read"));
  EXPECT_THAT(message({.authority = text}), HasSubstr("no certificate or key in PEM"));
  EXPECT_THAT(message({.authority = text, .certificate = text}), HasSubstr("go together"));
}

TEST(EtcdEndpoints, AStoreNeedsOne) {
  EXPECT_FALSE(EtcdStore::Open({}, [](const KvEvent&) {}).ok());
}

}  // namespace
}  // namespace troupe
