#include "troupe/key_file.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace troupe {
namespace {

using testing::ElementsAre;

TEST(KeyFile, HasAKeyOnEachLineThatIsNotEmpty) {
  EXPECT_THAT(ParseKeys("k", "one\n\n \t two words \r\nthree").value(),
              ElementsAre("one", "two words", "three"));
}

TEST(KeyFile, WithoutAKeyIsAMistake) {
  for (const char* text : {"", "\n", " \n\t\n  "}) {
    EXPECT_EQ(ParseKeys("a.keys", text).status().message(),
              "a.keys: no key in it, expected one a line");
  }
}

TEST(KeyFile, ThatIsNotThereIsNamed) {
  EXPECT_EQ(ReadKeys("/none.keys").status().code(), Code::kNotFound);
}

}  // namespace
}  // namespace troupe
