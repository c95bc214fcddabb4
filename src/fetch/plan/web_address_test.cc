#include "fetch/plan/web_address.h"

#include <gtest/gtest.h>

namespace troupe {
namespace {

std::string Origin(std::string_view address) {
  const Result<std::string> origin = OriginOf(address);
  return origin.ok() ? *origin : "none";
}

TEST(WebAddress, OriginIsSchemeHostAndPort) {
  EXPECT_EQ(Origin("https://Hub.Example/a/b?c"), "https://hub.example:443");
  EXPECT_EQ(Origin("HTTP://hub.example:8080"), "http://hub.example:8080");
  EXPECT_EQ(Origin("http://[::1]:80/x"), "http://[::1]:80");
  EXPECT_EQ(Origin("https://h:443/"), Origin("https://h"));
  EXPECT_NE(Origin("https://h:444/"), Origin("https://h"));
  EXPECT_NE(Origin("http://h"), Origin("https://h"));
  EXPECT_NE(Origin("https://h.evil"), Origin("https://h"));
}

TEST(WebAddress, OthersHaveNoOrigin) {
  for (const char* address : {"", "hub.example", "ftp://h", "file:///etc/passwd", "https://",
                              "https://user@h/", "https://hub.example@evil/", "https://h:99999/",
                              "https://h:x/", "https:///a", "https://a b/"}) {
    EXPECT_EQ(Origin(address), "none") << address;
  }
}

TEST(WebAddress, ARedirectLeadsAnywhereButOutOfEncryption) {
  EXPECT_TRUE(CheckRedirect("https://hub/a", "https://cdn/b").ok());
  EXPECT_TRUE(CheckRedirect("http://localhost:1/a", "http://localhost:2/b").ok());
  EXPECT_TRUE(CheckRedirect("http://hub/a", "https://hub/a").ok());
  EXPECT_FALSE(CheckRedirect("https://hub/a", "http://hub/a").ok());
  EXPECT_FALSE(CheckRedirect("https://hub/a", "file:///etc/passwd").ok());
}

TEST(WebAddress, APathIsEncodedByteByByte) {
  EXPECT_EQ(EncodedPath("a/b-Q4_0.gguf"), "a/b-Q4_0.gguf");
  EXPECT_EQ(EncodedPath("a b?c#d%"), "a%20b%3Fc%23d%25");
  EXPECT_EQ(EncodedPath("\xC3\xA4"), "%C3%A4");
}

}  // namespace
}  // namespace troupe
