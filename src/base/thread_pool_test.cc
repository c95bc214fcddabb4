#include "base/thread_pool.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <numeric>
#include <thread>

#include "base/available_cpus.h"
#include "base/thread_share.h"

namespace troupe {
namespace {

class ThreadPoolSizes : public testing::TestWithParam<std::size_t> {};

TEST_P(ThreadPoolSizes, RunsEveryTaskExactlyOnce) {
  ThreadPool pool(GetParam());
  for (const std::size_t tasks : {0u, 1u, 2u, 3u, 7u, 1000u}) {
    std::vector<std::atomic<int>> runs(tasks);
    pool.Run(tasks, [&](std::size_t task, std::size_t thread) {
      ASSERT_LT(thread, pool.threads());
      runs[task].fetch_add(1);
    });
    for (const auto& n : runs) EXPECT_EQ(n.load(), 1);
  }
}

TEST_P(ThreadPoolSizes, ManyShortRegionsSeeEachOthersWritesInOrder) {
  ThreadPool pool(GetParam());
  std::vector<int> values(64, 0);
  const int rounds = pool.threads() > AvailableCpus() ? 1000 : 20'000;
  for (int round = 1; round <= rounds; ++round) {
    pool.Run(values.size(), [&](std::size_t task, std::size_t) {
      values[task] += 1;  // unsynchronised: the region's end must publish it
    });
  }
  EXPECT_EQ(std::accumulate(values.begin(), values.end(), 0), 64 * rounds);
}

TEST_P(ThreadPoolSizes, WakesWorkersThatHaveGoneToSleep) {
  ThreadPool pool(GetParam());
  for (int round = 0; round < 5; ++round) {
    std::atomic<int> done{0};
    std::this_thread::sleep_for(std::chrono::milliseconds(20));
    pool.Run(100, [&](std::size_t, std::size_t) { done.fetch_add(1); });
    EXPECT_EQ(done.load(), 100);
  }
}

TEST_P(ThreadPoolSizes, TheCallerServesOthersBetweenItsTasks) {
  class Counted final : public ThreadPool::BetweenTasks {
   public:
    void Serve() override { ++served; }
    int served = 0;
  } counted;
  ThreadPool pool(GetParam());
  pool.Add(counted);
  std::atomic<int> own{0};
  pool.Run(1000, [&](std::size_t, std::size_t thread) {
    if (thread == 0) own.fetch_add(1);
  });
  EXPECT_GE(counted.served, own.load() - 1);
  EXPECT_LE(counted.served, own.load());
  pool.Remove(counted);
  const int before = counted.served;
  pool.Run(1000, [](std::size_t, std::size_t) {});
  EXPECT_EQ(counted.served, before);
}

INSTANTIATE_TEST_SUITE_P(, ThreadPoolSizes, testing::Values(1, 2, 3, 8),
                         testing::PrintToStringParamName());

TEST(ThreadPool, AllThreadsTakePartInALongRegion) {
  ThreadPool pool(3);
  std::vector<std::atomic<int>> by_thread(3);
  std::atomic<int> arrived{0};
  const auto give_up = std::chrono::steady_clock::now() + std::chrono::seconds(60);
  pool.Run(30, [&](std::size_t, std::size_t thread) {
    if (by_thread[thread].fetch_add(1) == 0) arrived.fetch_add(1);
    while (arrived.load() < 3 && std::chrono::steady_clock::now() < give_up) {
      std::this_thread::yield();
    }
  });
  for (const auto& n : by_thread) EXPECT_GT(n.load(), 0);
}

TEST(ThreadPool, RegionsThatEndBeforeAWorkerWakesRunEachTaskOnce) {
  ThreadPool pool(4);
  for (int round = 0; round < 300; ++round) {
    if (round % 3 == 0) std::this_thread::sleep_for(std::chrono::microseconds(300));  // they sleep
    std::vector<std::atomic<int>> runs(2 + static_cast<std::size_t>(round) % 5);
    pool.Run(runs.size(), [&](std::size_t task, std::size_t) { runs[task].fetch_add(1); });
    for (const auto& n : runs) ASSERT_EQ(n.load(), 1) << "round " << round;
  }
}

TEST(ThreadShare, AThreadIsLoweredFromWhereItBegan) {
  int first = 0, last = 0;
  std::thread([&] {
    const auto priority = [] {
      return ::getpriority(PRIO_PROCESS, static_cast<id_t>(::syscall(SYS_gettid)));
    };
    first = priority();
    LowerThreadPriority(1);
    LowerThreadPriority(2);
    last = priority();
  }).join();
  EXPECT_EQ(last, std::min(first + 3, 19));
}

}  // namespace
}  // namespace troupe
