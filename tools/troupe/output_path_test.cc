#include "troupe/output_path.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "testing/temp_folder.h"

namespace troupe {
namespace {

using testing::HasSubstr;

TEST(OutputPath, AFileMayBeNewOrThereOrADevice) {
  const TempFolder folder;
  EXPECT_TRUE(CheckOutputFile(folder.PathOf("new")).ok());
  EXPECT_TRUE(CheckOutputFile(folder.Write("old", "x")).ok());
  EXPECT_TRUE(CheckOutputFile("/dev/null").ok());
  EXPECT_TRUE(CheckOutputFile("beside-me").ok());
}

TEST(OutputPath, StandardOutputIsForWhatIsWrittenInOneGo) {
  EXPECT_TRUE(CheckOutput("-").ok());
  EXPECT_THAT(CheckOutputFile("-").message(), HasSubstr("a name expected"));
}

TEST(OutputPath, WhereNothingCanBeWrittenIsSaid) {
  const TempFolder folder;
  EXPECT_THAT(CheckOutput(folder.path().string()).message(), HasSubstr("is a folder"));
  EXPECT_THAT(CheckOutput(folder.PathOf("none/file")).message(),
              HasSubstr("there is no folder " + folder.PathOf("none")));
  // Nobody may make files there, the superuser included.
  EXPECT_THAT(CheckOutput("/proc/file").message(), HasSubstr("/proc/file: creating it"));
}

}  // namespace
}  // namespace troupe
