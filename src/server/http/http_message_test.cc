#include "server/http/http_message.h"

#include <gtest/gtest.h>

namespace troupe {
namespace {

TEST(HttpMessage, AHeaderIsFoundWhateverItsCase) {
  const HttpRequest request{.headers = {{"Content-Type", "a"}, {"X-Api-Key", "b"}}};
  EXPECT_EQ(request.Header("content-type"), "a");
  EXPECT_EQ(request.Header("x-api-key"), "b");
  EXPECT_EQ(request.Header("authorization"), "");
}

TEST(HttpMessage, EscapesAreDecodedAndWhatIsNoneStays) {
  EXPECT_EQ(DecodePercent("/a%20b%2Fc"), "/a b/c");
  EXPECT_EQ(DecodePercent("100%"), "100%");
  EXPECT_EQ(DecodePercent("%zz%4"), "%zz%4");
  EXPECT_EQ(DecodePercent("a+b"), "a+b");
}

TEST(HttpMessage, AHeadHasItsStatusTypeAndHeaders) {
  EXPECT_EQ(
      HeadOf({.status = 404, .content_type = "text/plain", .headers = {{"A", "b"}}},
             {{"Content-Length", "3"}}),
      "HTTP/1.1 404 Not Found\r\nContent-Type: text/plain\r\nA: b\r\nContent-Length: 3\r\n\r\n");
}

TEST(HttpMessage, AHeaderCannotBeginAnotherOne) {
  EXPECT_EQ(HeadOf({.content_type = "", .headers = {{"A", "b\r\nSet-Cookie: x"}}}, {}),
            "HTTP/1.1 200 OK\r\n\r\n");
}

}  // namespace
}  // namespace troupe
