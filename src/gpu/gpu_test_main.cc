// Runs tests that need a device. Where some were skipped and none failed it returns 77, which ctest
// calls skipped; a failure counts however many were skipped beside it.
#include <gtest/gtest.h>

int main(int argc, char** argv) {
  testing::InitGoogleTest(&argc, argv);
  const int failed = RUN_ALL_TESTS();
  if (failed != 0) return failed;
  return testing::UnitTest::GetInstance()->skipped_test_count() > 0 ? 77 : 0;
}
