#include "io/text_file.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>

#include "testing/temp_folder.h"

namespace troupe {
namespace {

using testing::HasSubstr;

TEST(TextFileTest, ReadsBackWhatItWroteAndReplacesWhatWasThere) {
  TempFolder folder;
  const std::string path = folder.Write("a", "a longer text than the new one");
  ASSERT_TRUE(WriteWholeText(path, "short\n").ok());
  EXPECT_EQ(ReadWholeText(path, Bytes(6)).value(), "short\n");
  ASSERT_TRUE(WriteWholeText(path, "").ok());
  EXPECT_EQ(ReadWholeText(path, Bytes(6)).value(), "");
}

TEST(TextFileTest, RefusesAFileThatIsTooLargeOrNotThere) {
  TempFolder folder;
  const std::string path = folder.Write("a", "1234567");
  EXPECT_THAT(ReadWholeText(path, Bytes(6)).status().message(), HasSubstr("at most 6 B expected"));
  EXPECT_FALSE(ReadWholeText(folder.PathOf("b"), Bytes(6)).ok());
}

TEST(TextFileTest, LeavesNothingWhereItCannotWrite) {
  TempFolder folder;
  EXPECT_FALSE(WriteWholeText(folder.PathOf("none/a"), "text").ok());
  EXPECT_TRUE(std::filesystem::is_empty(folder.path().c_str()));
}

}  // namespace
}  // namespace troupe
