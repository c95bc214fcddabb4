#include "io/link_speed.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace troupe {
namespace {

TEST(LinkSpeed, ReadsSpeedsAsPeopleWriteThem) {
  const auto is = [](std::string_view text, double rate, double latency) {
    const LinkSpeed link = ParseLinkSpeed(text).value();
    EXPECT_EQ(link.bytes_per_second, rate) << text;
    EXPECT_DOUBLE_EQ(link.latency_seconds, latency) << text;
  };
  is("500MiB", 500.0 * (1 << 20), 0);
  is("500MiB/s", 500.0 * (1 << 20), 0);
  is("2GiB/100us", 2.0 * (1 << 30), 100e-6);
  is("2GB/s/1.5ms", 2e9, 1.5e-3);
  is("1MB/2s", 1e6, 2);
  is("1MB/30ns", 1e6, 30e-9);
  is("unlimited", 0, 0);
  is("unlimited/1ms", 0, 1e-3);
}

TEST(LinkSpeed, RefusesWhatIsNoSpeedAndQuotesIt) {
  for (const char* text : {"", "0", "fast", "/1ms", "1GiB/", "1GiB/5", "1GiB/ms", "1GiB/-1ms",
                           "1GiB/1h", "1GiB/1ms/s", "1GiB/s/", "1GiB/nanms", "unlimited/s"}) {
    const auto link = ParseLinkSpeed(text);
    ASSERT_FALSE(link.ok()) << text;
    EXPECT_THAT(link.status().message(), testing::StartsWith(fmt::format("'{}'", text)));
  }
}

TEST(LinkSpeed, ReadsBackWhatItPrints) {
  for (const char* text : {"unlimited", "unlimited/2s", "500.0 MiB/s", "2.0 GiB/s/100us",
                           "1.0 KiB/s/30ns", "7.5 GiB/s/1.25ms"}) {
    EXPECT_EQ(ToString(ParseLinkSpeed(text).value()), text);
  }
}

}  // namespace
}  // namespace troupe
