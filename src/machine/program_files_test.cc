#include "machine/program_files.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "base/sanitized.h"
#include "machine/process_memory.h"

namespace troupe {
namespace {

TEST(ProgramFiles, AllOfThemAreResidentOnceTheyWereMapped) {
  if (kSanitized) GTEST_SKIP() << "nothing is mapped";
  const Bytes all = MapProgramFiles();
  EXPECT_GT(all, 2_MiB);
  const Bytes resident = ResidentMemoryParts().files;
  EXPECT_EQ(MappedProgramFiles(), all);
  // What was written of them (tables of the linker) counts as the process's own, and systems that
  // count by processor say the sum roughly.
  EXPECT_GE(resident + 2_MiB, all);
  EXPECT_EQ(MapProgramFiles(), all);
  const Bytes again = ResidentMemoryParts().files;
  EXPECT_LE(std::max(again, resident) - std::min(again, resident), 2_MiB);
}

}  // namespace
}  // namespace troupe
