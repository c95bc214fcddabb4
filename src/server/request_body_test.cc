#include "server/request_body.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace troupe {
namespace {

TEST(RequestBody, CountsTheValuesOfATextAndNotWhatIsInStrings) {
  EXPECT_EQ(CountJsonValues("1"), 1u);
  EXPECT_EQ(CountJsonValues("[1,2,3]"), 4u);
  EXPECT_EQ(CountJsonValues(R"({"a":[1,2],"b":"x,[{,\",,"})"), 5u);
  EXPECT_EQ(CountJsonValues(R"(["a\\",1])"), 3u);
}

TEST(RequestBody, TooManyValuesAreRefusedBeforeTheyAreMade) {
  std::string body = "[1";
  for (std::size_t i = 2; i < kMostBodyValues; ++i) body += ",1";
  const auto read = [](const JsonValue& json) { return json.size(); };
  EXPECT_EQ(ReadBody<std::size_t>(body + "]", read).value(), kMostBodyValues - 1);
  const Result<std::size_t> refused = ReadBody<std::size_t>(body + ",1]", read);
  EXPECT_EQ(refused.status().code(), Code::kInvalidArgument);
  EXPECT_THAT(refused.status().message(), testing::HasSubstr("131073 values"));
}

}  // namespace
}  // namespace troupe
