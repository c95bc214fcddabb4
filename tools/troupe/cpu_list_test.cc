#include "troupe/cpu_list.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sched.h>

#include <thread>

namespace troupe {
namespace {

using testing::ElementsAre;

TEST(CpuList, IsNumbersAndRanges) {
  EXPECT_THAT(ParseCpuList("3").value(), ElementsAre(3));
  EXPECT_THAT(ParseCpuList("6,0-2").value(), ElementsAre(0, 1, 2, 6));
  EXPECT_THAT(ParseCpuList("1,0-2,2").value(), ElementsAre(0, 1, 2));
  for (const char* const bad : {"", ",", "1,", "2-1", "a", "-1", "1-", "100000"}) {
    EXPECT_EQ(ParseCpuList(bad).status().code(), Code::kInvalidArgument) << bad;
  }
}

TEST(CpuList, ThreadsThatBeginLaterRunThereToo) {
  const auto allowed = [] {
    cpu_set_t set;
    ::sched_getaffinity(0, sizeof(set), &set);
    return set;
  };
  std::thread([&] {  // of which alone the processors change
    const cpu_set_t before = allowed();
    unsigned cpu = 0;
    while (!CPU_ISSET(cpu, &before)) ++cpu;
    ASSERT_TRUE(RunOnCpus({cpu}).ok());
    std::thread([&] {
      const cpu_set_t after = allowed();
      EXPECT_EQ(CPU_COUNT(&after), 1);
      EXPECT_TRUE(CPU_ISSET(cpu, &after));
    }).join();
  })
      .join();
}

TEST(CpuList, ProcessorsThatAreNotThereAreRefused) {
  EXPECT_THAT(RunOnCpus({CPU_SETSIZE - 1}).message(),
              testing::StartsWith("processor 1023 found, this machine has 0"));
}

}  // namespace
}  // namespace troupe
