#include "gguf/split.h"

#include <gtest/gtest.h>

namespace troupe {
namespace {

TEST(SplitName, IsReadFromAPathAndWrittenBack) {
  const SplitName name = {.prefix = "dir-1/m", .part = 2, .count = 13};
  EXPECT_EQ(ParseSplitName("dir-1/m-00002-of-00013.gguf"), name);
  EXPECT_EQ(FormatSplitName(name), "dir-1/m-00002-of-00013.gguf");
}

TEST(SplitName, OtherNamesAreNoParts) {
  for (const char* path : {"m.gguf", "m-00002-of-00013", "m-00002-of-00013.bin", "m-2-of-13.gguf",
                           "m-00000-of-00013.gguf", "m-00014-of-00013.gguf",
                           "m-0000x-of-00013.gguf", "m-00001-of-0001x.gguf", "m-00001of-00013.gguf",
                           "m00001-of-00013.gguf", "-of-00013.gguf", "00013.gguf", ".gguf", ""}) {
    EXPECT_FALSE(ParseSplitName(path).has_value()) << path;
  }
}

}  // namespace
}  // namespace troupe
