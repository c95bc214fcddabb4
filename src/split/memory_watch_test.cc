#include "split/memory_watch.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <filesystem>
#include <fstream>
#include <string>
#include <thread>
#include <vector>

#include "base/rng.h"
#include "split/end_and_cloud_for_test.h"
#include "testing/temp_folder.h"
#include "testing/test_seed.h"

namespace troupe {
namespace {

using testing::HasSubstr;
using namespace std::chrono_literals;

constexpr Nanos kWatchSecond = 1'000'000'000;

// A machine whose free memory the test says, with a process that has taken all that it may.
class MemoryWatchTest : public EndAndCloudTest {
 protected:
  void SetUp() override {
    // Some can be given back, whatever this process has taken already.
    model_ = OpenTinyWithFew({.sequences = 2, .answer_rules = true}, 0.8);
    ASSERT_NE(model_, nullptr);
    SetFree(2_GiB);
  }
  const Engine& engine() { return ModelAccess::EngineOf(*model_); }
  void SetFree(Bytes free) {
    const std::filesystem::path path = folder_.path().string() + "/proc/meminfo";
    std::filesystem::create_directories(path.parent_path());
    const std::filesystem::path whole = folder_.PathOf("next");  // never half of it
    std::ofstream(whole) << fmt::format("MemAvailable: {} kB\n", free.count() / 1024);
    std::filesystem::rename(whole, path);
  }
  MemoryWatchOptions Options(bool named = false) {
    return {.named = named,
            .lasting = 2 * kWatchSecond,
            .root = folder_.path().string(),
            .held = [this] {
              const MemoryPlan& plan = engine().plan().memory;
              return plan.total() - (plan.slots - slots_.load()) * engine().plan().needs.slot;
            }};
  }
  void OpenWatch(const MemoryWatchOptions& options) {
    slots_ = most();
    watch_ = MemoryWatch::Open(
        ModelAccess::EngineOf(*model_), [](const std::function<void()>& errand) { errand(); },
        options, [this](const std::string& line) { lines_ += line + "\n"; });
    ASSERT_NE(watch_, nullptr);
  }
  void Look() {
    now_ += kWatchSecond;
    watch_->OnTime(now_);
    slots_ = watch_->State().use.slots;
  }
  std::uint32_t most() { return engine().plan().memory.slots; }
  std::uint32_t least() { return engine().config().moe.routing.top_k; }

  TempFolder folder_;
  std::atomic<std::uint32_t> slots_ = 0;
  std::unique_ptr<MemoryWatch> watch_;
  std::string lines_;
  Nanos now_ = 0;
};

TEST_F(MemoryWatchTest, GivesExpertsBackWhileMemoryIsShortAndTakesThemAgain) {
  const Answer alone = Alone(Ask("The kernel", 20));
  OpenWatch(Options());
  Look();
  EXPECT_EQ(watch_->State().use.slots, most());
  EXPECT_EQ(watch_->State().marks, MemoryMarks::OfChosen(256_MiB));
  EXPECT_EQ(lines_, "");

  SetFree(100_MiB);
  Look();
  EXPECT_EQ(watch_->State().wanted, least());
  const SlotUse fewer = watch_->State().use;
  EXPECT_EQ(fewer.slots, least());
  EXPECT_EQ(fewer.with_memory, least());
  EXPECT_EQ(fewer.given_back, most() - least());
  EXPECT_GT(fewer.returned, 0_B);
  EXPECT_THAT(lines_, HasSubstr("memory is short (100.0 MiB free): this device keeps"));
  EXPECT_EQ(Alone(Ask("The kernel", 20)).text, alone.text);

  SetFree(2_GiB);
  for (int i = 0; i < 2; ++i) Look();
  EXPECT_EQ(watch_->State().use.slots, least());
  Look();
  EXPECT_EQ(watch_->State().use.slots, most());
  EXPECT_EQ(watch_->State().use.taken_again, most() - least());
  EXPECT_THAT(lines_, HasSubstr("memory is there again (2.0 GiB free): this device may keep"));
  EXPECT_EQ(Alone(Ask("The kernel", 20)).text, alone.text);
}

TEST_F(MemoryWatchTest, ANamedBudgetStaysUntilHardlyAnythingIsFree) {
  OpenWatch(Options(/*named=*/true));
  SetFree(40_MiB);
  Look();
  EXPECT_EQ(watch_->State().use.slots, most());
  SetFree(30_MiB);
  Look();
  EXPECT_LT(watch_->State().use.slots, most());
}

TEST_F(MemoryWatchTest, LooksSoonerWhileMemoryFalls) {
  MemoryWatchOptions options = Options(/*named=*/true);
  options.every = kWatchSecond;
  OpenWatch(std::move(options));
  Look();
  SetFree(72_MiB);
  Look();  // from 2 GiB: the rest may be gone within some milliseconds
  SetFree(20_MiB);
  now_ += kWatchSecond / 10;
  watch_->OnTime(now_);
  EXPECT_LT(watch_->State().use.slots, most());
}

TEST_F(MemoryWatchTest, WhatIsNotKnownChangesNothing) {
  OpenWatch(Options());
  std::filesystem::remove_all(folder_.path() / "proc");
  Look();
  EXPECT_EQ(watch_->State().use.slots, most());
}

TEST_F(MemoryWatchTest, WithAllExpertsInMemoryThereIsNothingToWatch) {
  const auto all = OpenTiny();
  EXPECT_EQ(MemoryWatch::Open(ModelAccess::EngineOf(*all), {}, Options(), {}), nullptr);
  all->Close();
}

TEST_F(MemoryWatchTest, SaysWhenItWillChangeWhereThatIsAsked) {
  MemoryWatchOptions options = Options();
  options.explain = true;
  OpenWatch(options);
  EXPECT_EQ(lines_,
            "experts are given back when the budget leaves others less than 128.0 MiB, and taken "
            "again above 192.0 MiB\n");
  EXPECT_THAT(Describe(MemoryMarks::OfNamed(256_MiB), true),
              HasSubstr("when there is less than 32.0 MiB"));
}

// A whole end, whose memory comes and goes in the middle of answers.
TEST_F(MemoryWatchTest, AnswersAreTheSameWhileMemoryComesAndGoes) {
  std::vector<Request> requests;
  for (const char* prompt : {"The kernel", "A driver of a device", "In the beginning", "It is"}) {
    requests.push_back(Ask(prompt, 40));
    requests.back().ignore_end = true;
  }
  std::vector<std::string> expected;
  for (const Request& request : requests) expected.push_back(Alone(request).text);
  OpenCloud();
  MemoryWatchOptions memory = Options();
  memory.every = 2'000'000;
  memory.lasting = 4'000'000;
  slots_ = most();
  OpenEnd({.rule = "end", .memory = memory});
  Rng rng(TestSeed());
  for (int round = 0; round < 200; ++round) {
    std::vector<Generation> under_way;
    for (const Request& request : requests) under_way.push_back(end_->Start(request, {}).value());
    std::this_thread::sleep_for(std::chrono::milliseconds(rng.Below(30)));
    SetFree(rng.Below(2) == 0 ? 2_GiB : 100_MiB);
    for (std::size_t i = 0; i < requests.size(); ++i) {
      EXPECT_EQ(under_way[i].Wait()->text, expected[i]);
    }
    const std::optional<MemoryState> state = end_->State().memory;
    if (!state) continue;
    slots_ = state->use.slots;
    if (state->use.given_back >= 5 * (most() - least()) && round >= 10) break;
  }
  const MemoryState state = end_->State().memory.value();
  EXPECT_GT(state.use.given_back, 0u);
  EXPECT_GT(state.use.taken_again, 0u);
  EXPECT_GT(state.use.returned, 0_B);
  EXPECT_THAT(said(), HasSubstr("memory is short"));
}

}  // namespace
}  // namespace troupe
