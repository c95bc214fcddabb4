#include "server/http/http_url.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace troupe {
namespace {

using testing::HasSubstr;

HttpUrl Parsed(std::string_view text) { return ParseHttpUrl(text).value(); }

TEST(HttpUrls, HaveASchemeAHostAPortAndAPath) {
  EXPECT_EQ(Parsed("http://127.0.0.1:8080"),
            (HttpUrl{.tls = false, .host = "127.0.0.1", .port = 8080, .path = ""}));
  EXPECT_EQ(Parsed("https://a-b.example/models/"),
            (HttpUrl{.tls = true, .host = "a-b.example", .port = 443, .path = "/models"}));
  EXPECT_EQ(Parsed("localhost"),
            (HttpUrl{.tls = false, .host = "localhost", .port = 80, .path = ""}));
  EXPECT_EQ(Parsed("http://[::1]:81/"),
            (HttpUrl{.tls = false, .host = "::1", .port = 81, .path = ""}));
}

TEST(HttpUrls, AreWrittenAsTheyAreRead) {
  for (const char* text : {"http://127.0.0.1:8080", "https://a.example/base", "http://[::1]:81",
                           "https://[fe80::1]", "http://a.example:443"}) {
    EXPECT_EQ(Parsed(text).ToString(), text);
  }
  EXPECT_EQ(Parsed("http://a.example:80").Authority(), "a.example");
}

TEST(HttpUrls, SayWhatIsWrongWithATextThatIsNone) {
  for (const char* text :
       {"", "http://", "ftp://a", "http://a:0", "http://a:65536", "http://a:8080x",
        "http://a:", "http://a b", "http://[::1", "http://[::1]8080", "http://[a]", "http://a/b c",
        "http://a/?q", "http://user@a", "http://a\r\nX: y"}) {
    const Result<HttpUrl> url = ParseHttpUrl(text);
    ASSERT_FALSE(url.ok()) << text;
    EXPECT_EQ(url.status().code(), Code::kInvalidArgument);
    EXPECT_THAT(url.status().message(), HasSubstr("http://HOST:PORT"));
  }
}

}  // namespace
}  // namespace troupe
