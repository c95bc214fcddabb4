#include "cluster/face/transport_options.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace troupe {
namespace {

using testing::HasSubstr;
using namespace std::chrono_literals;

std::string WhyNot(const TransportOptions& options) {
  const Status status = CheckTransportOptions(options);
  EXPECT_TRUE(status.ok() || status.code() == Code::kInvalidArgument);
  return status.message();
}

TEST(TransportOptions, TheDefaultsAreGood) { EXPECT_EQ(WhyNot({}), ""); }

TEST(TransportOptions, PlainTextStaysOnThisMachineUnlessAllowed) {
  const std::string why_not = WhyNot({.host = "0.0.0.0"});
  EXPECT_THAT(why_not, HasSubstr("'0.0.0.0': without TLS"));
  for (const char* way_out : {"`troupe cluster certificates`", "--peer-plain-text"}) {
    EXPECT_THAT(why_not, HasSubstr(way_out));
  }
  EXPECT_EQ(WhyNot({.host = "0.0.0.0", .allow_plain_text = true}), "");
  const PeerTlsFiles tls{.authority = "a", .certificate = "c", .key = "k"};
  EXPECT_EQ(WhyNot({.host = "0.0.0.0", .tls = tls}), "");
  const PeerAddress far{.host = "10.0.0.2", .port = 7070}, near{.host = "::1", .port = 7070};
  EXPECT_FALSE(CheckMayTalkTo(far, {}).ok());
  EXPECT_TRUE(CheckMayTalkTo(near, {}).ok());
  EXPECT_TRUE(CheckMayTalkTo(far, {.tls = tls}).ok());
}

TEST(TransportOptions, TlsFilesComeTogether) {
  EXPECT_THAT(WhyNot({.tls = {.authority = "a"}}), HasSubstr("authority, certificate and key"));
  EXPECT_NE(WhyNot({.tls = {.certificate = "c", .key = "k"}}), "");
  EXPECT_NE(WhyNot({.tls = {.authority = "a", .certificate = "c"}}), "");
}

TEST(TransportOptions, LimitsMustHoldAFrame) {
  EXPECT_THAT(WhyNot({.most_frame = 0}), HasSubstr("a frame of 0 bytes"));
  EXPECT_NE(WhyNot({.most_frame = std::size_t{1} << 31}), "");
  EXPECT_THAT(WhyNot({.most_frame = 100, .most_unsent = 99}), HasSubstr("99 bytes may wait"));
  EXPECT_THAT(WhyNot({.most_frame = 100, .most_unsent = 100, .most_buffered = 199}),
              HasSubstr("199 bytes may be buffered"));
  EXPECT_EQ(WhyNot({.most_frame = 100, .most_unsent = 100, .most_buffered = 200}), "");
}

TEST(TransportOptions, TimesArePositive) {
  EXPECT_NE(WhyNot({.ping_every = 0ms}), "");
  EXPECT_NE(WhyNot({.connect_time = -1ms}), "");
  EXPECT_THAT(WhyNot({.longest_pause = std::chrono::hours(25)}), HasSubstr("90000000 ms"));
}

}  // namespace
}  // namespace troupe
