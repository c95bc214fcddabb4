#include "base/first_error.h"

#include <gtest/gtest.h>

#include <thread>
#include <vector>

namespace troupe {
namespace {

TEST(FirstError, IsOkUntilAnErrorIsNoted) {
  FirstError error;
  EXPECT_TRUE(error.Take().ok());
  error.Note(1, OkStatus());
  EXPECT_TRUE(error.Take().ok());
}

TEST(FirstError, KeepsTheEarliestPlaceWhateverTheOrderOfArrival) {
  FirstError error;
  std::vector<std::thread> threads;
  for (std::uint64_t t = 0; t < 4; ++t) {
    threads.emplace_back([&error, t] {
      for (std::uint64_t place = 100; place-- > 0;) {
        error.Note(place * 4 + t, InvalidArgument("at {}", place * 4 + t));
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(error.Take().message(), "at 0");
}

}  // namespace
}  // namespace troupe
