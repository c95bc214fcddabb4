#include "expert/cache/echo_settings.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace troupe {
namespace {

TEST(EchoSettingsTest, AreReadAsTheyAreWritten) {
  EXPECT_EQ(ToString(EchoSettings()), "64,0.25,0.95,3");
  for (const char* text : {"64,0.25,0.95,3", "1,0,0.5,0.5", "4096,10,0.999,32"}) {
    EXPECT_EQ(ToString(ParseEchoSettings(text).value()), text);
  }
  EXPECT_EQ(ParseEchoSettings("64,0.25,0.95,3").value(), EchoSettings());
}

TEST(EchoSettingsTest, SayWhatWasExpected) {
  for (const char* text :
       {"", "64", "64,0.25,0.95", "64,0.25,0.95,3,", "64,0.25,0.95,3,1", "64;0.25;0.95;3",
        "0,0.25,0.95,3", "1.5,0.25,0.95,3", "9999,0.25,0.95,3", "64,-1,0.95,3", "64,0.25,0,3",
        "64,0.25,1,3", "64,0.25,0.95,0", "64,0.25,0.95,-3", "nan,0.25,0.95,3", "64,nan,0.95,3",
        "64,0.25,nan,3", "64,0.25,0.95,inf"}) {
    const Result<EchoSettings> settings = ParseEchoSettings(text);
    ASSERT_FALSE(settings.ok()) << text;
    EXPECT_THAT(settings.status().message(),
                testing::HasSubstr("expected four numbers as in 64,0.25,0.95,3: 1 to 4096 tokens"));
  }
}

}  // namespace
}  // namespace troupe
