// Who may have a link where there is TLS: those who show a certificate of the authority, and no one
// else.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdlib>

#include "cluster/face/certificates.h"
#include "cluster/transport/peer_links_for_test.h"
#include "testing/temp_folder.h"

namespace troupe {
namespace {

using testing::Contains;
using testing::HasSubstr;
using testing::IsEmpty;
using namespace std::chrono_literals;

// An authority of its own in a folder, and what it has signed.
class Authority {
 public:
  Authority() {
    OpenSsl("-subj /CN=authority -keyout " + Key("authority") + " -out " + Certificate());
  }

  // A node's files; `names` is what its certificate is for.
  PeerTlsFiles Sign(const std::string& name, const std::string& names = "IP:127.0.0.1") const {
    OpenSsl("-CA " + Certificate() + " -CAkey " + Key("authority") + " -subj /CN=" + name +
            " -addext subjectAltName=" + names + " -keyout " + Key(name) + " -out " + Path(name));
    return {.authority = Certificate(), .certificate = Path(name), .key = Key(name)};
  }
  std::string Certificate() const { return Path("authority"); }
  const TempFolder& folder() const { return folder_; }

 private:
  std::string Path(const std::string& name) const { return folder_.PathOf(name + ".pem"); }
  std::string Key(const std::string& name) const { return folder_.PathOf(name + ".key"); }
  static void OpenSsl(const std::string& rest) {
    const std::string command =
        "openssl req -x509 -newkey ec -pkeyopt ec_paramgen_curve:prime256v1 -nodes -days 2 " +
        rest + " 2>/dev/null";
    EXPECT_EQ(std::system(command.c_str()), 0) << command;
  }

  TempFolder folder_;
};

TEST(Certificates, LetNodesTalkAndOthersAreRefused) {
  const TempFolder folder;
  const std::string at = folder.PathOf(".");
  const auto files = [&](const std::string& host) {
    return PeerTlsFiles{.authority = at + "/authority.pem",
                        .certificate = at + "/" + host + ".pem",
                        .key = at + "/" + host + ".key"};
  };
  EXPECT_EQ(WriteCertificates({.folder = at, .hosts = {"127.0.0.1"}}).value().size(), 4u);
  // A node that comes later is signed by the same authority.
  EXPECT_EQ(WriteCertificates({.folder = at, .hosts = {"127.0.0.2", "b.lan"}}).value().size(), 4u);
  TestNode a({.host = "127.0.0.2", .tls = files("127.0.0.2")}), b({.tls = files("127.0.0.1")});
  a.Start();
  b.Start();
  EXPECT_NE(a.DialAndWait(b.address()), 0u);
  EXPECT_NE(b.DialAndWait("127.0.0.2:" + std::to_string(a.links->port())), 0u);
  EXPECT_THAT(WriteCertificates({.folder = at, .hosts = {"b.lan"}}).status().message(),
              HasSubstr("b.lan.pem exists already"));
  for (const char* host : {"", "../a", "a,DNS:b", "authority"}) {
    EXPECT_FALSE(WriteCertificates({.folder = at, .hosts = {host}}).ok()) << host;
  }
}

// Tries it, and returns why there was no link.
std::string WhyRefused(TestNode& from, const TestNode& to) {
  const LinkId link = from.links->Dial(to.address()).value();
  std::string why;
  EXPECT_TRUE(from.heard.Wait([&](const HeardEvents::Heard& heard) {
    for (const auto& each : heard.unreachable) {
      if (each.link == link) why = each.why.message();
    }
    return !why.empty();
  }));
  EXPECT_THAT(from.heard.heard().opened, IsEmpty());
  from.links->Close(link);
  return why;
}

TEST(PeerLinksTls, PeersOfOneAuthorityTalkAndKnowEachOthersNames) {
  const Authority authority;
  TestNode a({.tls = authority.Sign("node-a")});
  TestNode b({.tls = authority.Sign("node-b", "IP:127.0.0.1,DNS:b.lan")});
  a.Start();
  b.StartEcho();
  const LinkId link = a.DialAndWait(b.address());
  ASSERT_NE(link, 0);
  ASSERT_TRUE(b.heard.WaitOpened(1));
  EXPECT_THAT(a.heard.heard().opened[0].second.names,
              testing::IsSupersetOf({"node-b", "b.lan", "127.0.0.1"}));
  EXPECT_THAT(b.heard.heard().opened[0].second.names, Contains("node-a"));
  Rng rng(1);
  const Frame frame = RandomFrame(rng, 300'000);
  ASSERT_TRUE(a.links->Send(link, frame).ok());
  ASSERT_TRUE(a.heard.WaitFrames(link, 1));
  EXPECT_EQ(a.heard.heard().frames[link][0], frame);
}

TEST(PeerLinksTls, OnlyAPeerOfTheSameAuthorityGetsALink) {
  const Authority authority, other;
  TestNode node({.tls = authority.Sign("node")});
  node.Start();
  {
    TestNode stranger({.tls = other.Sign("stranger")});
    stranger.Start();
    EXPECT_THAT(WhyRefused(stranger, node), HasSubstr("certificate verify failed"));
    EXPECT_NE(WhyRefused(node, stranger), "");
  }
  {
    // Trusts the node, but shows it a certificate of the other authority.
    PeerTlsFiles files = other.Sign("pretender");
    files.authority = authority.Certificate();
    TestNode pretender({.tls = files});
    pretender.Start();
    EXPECT_NE(WhyRefused(pretender, node), "");
  }
  {
    TestNode plain;
    plain.Start();
    EXPECT_NE(WhyRefused(plain, node), "");
    EXPECT_NE(WhyRefused(node, plain), "");
  }
  EXPECT_THAT(node.heard.heard().opened, IsEmpty());
  EXPECT_EQ(node.links->counters().opened, 0);
}

TEST(PeerLinksTls, APeerWhoseCertificateIsForAnotherHostIsNotDialled) {
  const Authority authority;
  TestNode a({.tls = authority.Sign("node-a")});
  TestNode elsewhere({.tls = authority.Sign("elsewhere", "DNS:elsewhere.lan")});
  a.Start();
  elsewhere.Start();
  EXPECT_NE(WhyRefused(a, elsewhere), "");
  EXPECT_NE(elsewhere.DialAndWait(a.address()), 0) << "who dials needs no name";
}

TEST(PeerLinksTls, FilesThatAreNotWhatTheyShouldBeAreNamed) {
  const Authority authority;
  const PeerTlsFiles good = authority.Sign("good"), another = authority.Sign("another");
  const auto why = [](PeerTlsFiles files) {
    const auto links = PeerLinks::Listen({.tls = std::move(files)});
    return links.ok() ? "" : links.status().message();
  };
  EXPECT_EQ(why(good), "");
  PeerTlsFiles files = good;
  files.key = "/none.key";
  EXPECT_THAT(why(files), HasSubstr("/none.key"));
  const std::string noise = authority.folder().Write("noise.pem", "noise");
  for (auto field : {&PeerTlsFiles::authority, &PeerTlsFiles::certificate, &PeerTlsFiles::key}) {
    files = good;
    files.*field = noise;
    EXPECT_THAT(why(files), HasSubstr(noise)) << "it was taken";
  }
  files = good;
  files.key = another.key;
  EXPECT_THAT(why(files), HasSubstr(files.key)) << "the key of another certificate was taken";
}

TEST(PeerLinksTls, WhatGrpcSaysOfRefusalsStaysOffTheTerminal) {
  const Authority authority, other;
  TestNode node({.tls = authority.Sign("node")}), stranger({.tls = other.Sign("stranger")});
  testing::internal::CaptureStderr();
  testing::internal::CaptureStdout();
  node.Start();
  stranger.Start();
  WhyRefused(stranger, node);
  EXPECT_FALSE(PeerLinks::Listen({.port = node.links->port()}).ok());
  EXPECT_EQ(testing::internal::GetCapturedStderr(), "");
  EXPECT_EQ(testing::internal::GetCapturedStdout(), "");
}

}  // namespace
}  // namespace troupe
