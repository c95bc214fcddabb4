#include "cluster/face/peer_address.h"

#include "cluster/face/own_address.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace troupe {
namespace {

TEST(PeerAddress, IsReadAndWrittenTheSame) {
  for (const char* text : {"127.0.0.1:7070", "[::1]:1", "node-a.lan:65535", "localhost:80"}) {
    const auto address = ParsePeerAddress(text);
    ASSERT_TRUE(address.ok()) << text;
    EXPECT_EQ(address->ToString(), text);
  }
  EXPECT_EQ(*ParsePeerAddress("[fe80::2]:9"), (PeerAddress{.host = "fe80::2", .port = 9}));
}

TEST(PeerAddress, WhatIsNotAHostAndAPortIsRefused) {
  for (const char* text :
       {"", ":", "host", "host:", ":7070", "host:0", "host:65536", "host:7x", "host: 7", "::1:7070",
        "[::1]", "[host]:7070", "[]:7070", "unix:/tmp/socket", "dns:///a:7070", "a b:7070"}) {
    const auto address = ParsePeerAddress(text);
    ASSERT_FALSE(address.ok()) << text;
    EXPECT_EQ(address.status().code(), Code::kInvalidArgument);
    EXPECT_THAT(address.status().message(), testing::HasSubstr(text));
  }
}

TEST(PeerAddress, AllAddressesOfAMachineAreNoneThatCanBeDialled) {
  for (const char* host : {"0.0.0.0", "::", "0:0:0:0:0:0:0:0"}) {
    EXPECT_TRUE(PeerAddress{.host = host}.IsEvery()) << host;
  }
  for (const char* host : {"127.0.0.1", "::1", "0.0.0.1", "localhost", "every"}) {
    EXPECT_FALSE(PeerAddress{.host = host}.IsEvery()) << host;
  }
}

TEST(PeerAddress, LoopbackIsToldFromTheNetwork) {
  for (const char* host : {"127.0.0.1", "127.9.9.9", "::1", "localhost"}) {
    EXPECT_TRUE(PeerAddress{.host = host}.IsLoopback()) << host;
  }
  for (const char* host : {"128.0.0.1", "0.0.0.0", "::", "10.0.0.1", "localhost.evil.example",
                           "127.evil.example", "::ffff:10.0.0.1"}) {
    EXPECT_FALSE(PeerAddress{.host = host}.IsLoopback()) << host;
  }
}

TEST(PeerAddress, ACertificateNamesItsHostsAndNoOthers) {
  const std::vector<std::string> names = {"a.lan", "10.0.0.1", "::1", "*.peers.svc"};
  for (const char* host : {"a.lan", "10.0.0.1", "::1", "0:0:0:0:0:0:0:1", "n0.peers.svc"}) {
    EXPECT_TRUE(PeerAddress{.host = host}.IsNamed(names)) << host;
  }
  for (const char* host : {"b.lan", "lan", "10.0.0.2", "::2", "peers.svc", "a.n0.peers.svc", "*"}) {
    EXPECT_FALSE(PeerAddress{.host = host}.IsNamed(names)) << host;
  }
  EXPECT_FALSE(PeerAddress{.host = "a.lan"}.IsNamed({}));
}

TEST(PeerAddress, TheOtherEndOfAConnectionIsWrittenAsAnAddress) {
  EXPECT_EQ(AddressOfPeerUri("ipv4:10.0.0.1:7070"), "10.0.0.1:7070");
  EXPECT_EQ(AddressOfPeerUri("ipv6:%5B::1%5D:7070"), "[::1]:7070");
  EXPECT_EQ(AddressOfPeerUri("ipv6:[fe80::1%25eth0]:1"), "[fe80::1%eth0]:1");
  EXPECT_EQ(AddressOfPeerUri("100%"), "100%");
  EXPECT_EQ(AddressOfPeerUri("%zz%4"), "%zz%4");
}

TEST(OwnAddress, IsTheOneFromWhichTheOtherIsReached) {
  EXPECT_EQ(OwnHostTowards({.host = "127.0.0.1", .port = 1}).value(), "127.0.0.1");
  EXPECT_EQ(OwnHostTowards({.host = "::1", .port = 1}).value(), "::1");
  EXPECT_FALSE(OwnHostTowards({.host = "no such host", .port = 1}).ok());
}

TEST(OwnAddress, AHostOfTheLoopbackIsToldFromOneOfTheNetwork) {
  for (const char* host : {"127.0.0.1", "127.0.1.1", "::1", "localhost"}) {
    EXPECT_TRUE(IsLoopbackHere({.host = host}).value()) << host;
  }
  for (const char* host : {"192.0.2.1", "0.0.0.0", "::", "2001:db8::1"}) {
    EXPECT_FALSE(IsLoopbackHere({.host = host}).value()) << host;
  }
  EXPECT_FALSE(IsLoopbackHere({.host = "no such host"}).ok());
}

TEST(PeerAddress, WithoutAPortItIsTheUsualOne) {
  EXPECT_EQ(WithUsualPort("b.lan"), "b.lan:7070");
  EXPECT_EQ(WithUsualPort("10.0.0.1"), "10.0.0.1:7070");
  EXPECT_EQ(WithUsualPort("10.0.0.1:9"), "10.0.0.1:9");
  EXPECT_EQ(WithUsualPort("::1"), "[::1]:7070");
  EXPECT_EQ(WithUsualPort("[::1]"), "[::1]:7070");
  EXPECT_EQ(WithUsualPort("[::1]:9"), "[::1]:9");
}

}  // namespace
}  // namespace troupe
