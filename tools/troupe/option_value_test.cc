#include "troupe/option_value.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace troupe {
namespace {

using ::testing::HasSubstr;
using ::testing::StartsWith;

std::string Refusal(const std::string& text) {
  TensorType type = TensorType::kF32;
  return ParseValue(text, type).message();
}

TEST(OptionValue, NamesOfWholeFilesAreExplainedByTheTypeTheyBeginWith) {
  EXPECT_THAT(Refusal("q4_k_m"),
              StartsWith("'q4_k_m' names a whole file's mix of types; did you mean Q4_K? expected "
                         "one of F32, "));
  EXPECT_THAT(Refusal("Q5_K_M"), HasSubstr("did you mean Q5_K?"));
  EXPECT_THAT(Refusal("q4_k_s"), HasSubstr("did you mean Q4_K?"));
  EXPECT_THAT(Refusal("Q3_K_L"), HasSubstr("did you mean Q3_K?"));
  EXPECT_THAT(Refusal("Q2_K_XL"), HasSubstr("did you mean Q2_K?"));
}

TEST(OptionValue, MistypedTypesAreExplainedByTheNearestOne) {
  EXPECT_THAT(Refusal("q4k"), StartsWith("'q4k' is no type; did you mean Q4_K? expected one of"));
  EXPECT_THAT(Refusal("fp16"), HasSubstr("did you mean F16?"));
  EXPECT_THAT(Refusal("turbo_M"), StartsWith("'turbo_M' is no type; expected one of F32, F16, "));
}

TEST(OptionValue, SizesThatLackTheirUnitAreRefusedWithTheUnitsThatWereMeant) {
  EXPECT_EQ(CheckSizeHasUnit("32").message(),
            "'32' found, which is 32 B, expected a size with its unit: 32MiB or 32GiB?");
  EXPECT_THAT(CheckSizeHasUnit("1.5").message(), HasSubstr("1.5MiB or 1.5GiB?"));
  for (const char* fine : {"32MiB", "32k", "32 B", "1048576", "6442450944"}) {
    EXPECT_TRUE(CheckSizeHasUnit(fine).ok()) << fine;
  }
  EXPECT_EQ(CheckSizeHasUnit("0").message(), "'0' found, expected more than 0, as 6GiB");
  EXPECT_THAT(CheckSizeHasUnit("6 parsecs").message(), HasSubstr("is not a size"));
}

}  // namespace
}  // namespace troupe
