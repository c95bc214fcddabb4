#include "server/live_page.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "server/live_page_data.h"

namespace troupe {
namespace {

using testing::HasSubstr;
using testing::Not;

// What stands between the only pair of these tags.
std::string_view Between(std::string_view html, std::string_view open, std::string_view close) {
  const std::size_t begin = html.find(open);
  EXPECT_NE(begin, html.npos) << open;
  EXPECT_EQ(html.find(open, begin + 1), html.npos) << "only one " << open;
  html.remove_prefix(begin + open.size());
  return html.substr(0, html.find(close));
}

// That these are the hashes of what the page holds, tests/serve_test.py says.
TEST(LivePage, ThePolicyAllowsOneStyleAndOneScriptByTheirHashes) {
  const HttpResponse page = LivePage({});
  EXPECT_EQ(page.status, 200);
  EXPECT_EQ(page.content_type, "text/html; charset=utf-8");
  const std::string policy(HeaderOf(page.headers, "content-security-policy"));
  EXPECT_THAT(policy, HasSubstr("default-src 'none'"));
  EXPECT_THAT(policy, HasSubstr("connect-src 'self'"));
  EXPECT_THAT(policy, HasSubstr("frame-ancestors 'none'"));
  EXPECT_THAT(policy, Not(HasSubstr("unsafe")));
  const LivePageData file = LivePageFile();
  EXPECT_EQ(file.script_hash.size(), 44u);
  EXPECT_EQ(file.style_hash.size(), 44u);
  EXPECT_THAT(policy, HasSubstr("script-src 'sha256-" + std::string(file.script_hash) + "';"));
  EXPECT_THAT(policy, HasSubstr("style-src 'sha256-" + std::string(file.style_hash) + "';"));
}

TEST(LivePage, IsOneFileThatLoadsNothing) {
  const std::string body = LivePage({}).body;
  EXPECT_TRUE(body.starts_with("<!doctype html>"));
  EXPECT_TRUE(body.ends_with("</html>\n"));
  for (const char* const outside : {"src=\"http", "href=\"http", "@import", "url(",
                                    " onclick=", " onload=", " style=\"", "@STYLE@", "@SCRIPT@"}) {
    EXPECT_THAT(body, Not(HasSubstr(outside)));
  }
  const auto script = Between(body, "<script type=\"module\">", "</script>");
  for (const char* const unsafe : {"innerHTML", "outerHTML", "insertAdjacentHTML", "document.write",
                                   "eval(", "new Function", "\nimport ", "\nexport "}) {
    EXPECT_EQ(script.find(unsafe), script.npos) << unsafe;
  }
}

TEST(LivePage, ABrowserThatHasItNeedNotReadItAgain) {
  const HttpResponse first = LivePage({});
  const std::string tag(HeaderOf(first.headers, "etag"));
  EXPECT_EQ(tag.size(), 18u);
  EXPECT_EQ(HeaderOf(first.headers, "cache-control"), "no-cache");
  const HttpResponse again = LivePage({.headers = {{"If-None-Match", "\"other\", W/" + tag}}});
  EXPECT_EQ(again.status, 304);
  EXPECT_TRUE(again.body.empty());
  EXPECT_EQ(HeaderOf(again.headers, "etag"), tag);
  EXPECT_EQ(LivePage({.headers = {{"If-None-Match", "\"other\""}}}).status, 200);
}

}  // namespace
}  // namespace troupe
