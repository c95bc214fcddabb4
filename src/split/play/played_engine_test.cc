// An engine on a virtual clock tells of passes what a live one tells of them.
#include "split/play/played_engine.h"

#include <gtest/gtest.h>

#include <vector>

namespace troupe {
namespace {

constexpr EngineSetup kSetup = {.costs = {.pass_seconds = 0.01, .row_seconds = 0.001},
                                .sequences = 2,
                                .limits = {.most_rows = 64}};

class PlayedEngineTest : public testing::Test {
 protected:
  RequestId Start(std::uint32_t prompt, std::uint32_t tokens) {
    const std::size_t number = heard_.size();
    heard_.emplace_back();
    return engine_.Start(
        prompt, tokens,
        {.on_read = [this, number](std::size_t read, std::size_t) { heard_[number].read = read; },
         .on_token = [this, number] { ++heard_[number].tokens; },
         .on_end = [this, number] { heard_[number].ended = agenda_.Seconds(); }});
  }
  void RunAll() {
    while (agenda_.RunNext()) {
    }
  }

  struct Heard {
    std::size_t read = 0, tokens = 0;
    double ended = 0;
  };
  Agenda agenda_;
  PlayedEngine engine_{agenda_, kSetup};
  std::vector<Heard> heard_;
};

TEST_F(PlayedEngineTest, APromptIsReadInPassesAndItsAnswerIsAPassAToken) {
  Start(100, 3);
  RunAll();
  EXPECT_EQ(heard_[0].read, 64u);
  EXPECT_EQ(heard_[0].tokens, 3u);
  EXPECT_NEAR(heard_[0].ended, 4 * 0.01 + 102 * 0.001, 1e-6);
  EXPECT_NEAR(engine_.busy_seconds(), heard_[0].ended, 1e-6);
  const BatchCounters counters = engine_.counters();
  EXPECT_EQ(counters.finished, 1u);
  EXPECT_EQ(counters.prompt_tokens, 100u);
  EXPECT_NEAR(counters.request_seconds, heard_[0].ended, 1e-6);
  EXPECT_GT(counters.read_seconds, 0.001);
  EXPECT_GT(counters.exact_speed.decode.At(1), 0);
}

TEST_F(PlayedEngineTest, ThoseThatComeTogetherShareAPass) {
  Start(20, 1);
  Start(20, 1);
  RunAll();
  EXPECT_NEAR(heard_[0].ended, 0.01 + 40 * 0.001, 1e-6);
  EXPECT_EQ(heard_[1].ended, heard_[0].ended);
}

TEST_F(PlayedEngineTest, WhoFindsNoSequenceWaitsAndIsCounted) {
  for (int i = 0; i < 3; ++i) Start(20, 1);
  agenda_.RunNext();
  BatchCounters counters = engine_.counters();
  EXPECT_EQ(counters.waiting, 1u);
  EXPECT_EQ(counters.reading, 2u);
  EXPECT_EQ(counters.to_read, 60u);
  RunAll();
  EXPECT_GT(heard_[2].ended, heard_[0].ended);
  counters = engine_.counters();
  EXPECT_EQ(counters.waiting + counters.reading + counters.decoding + counters.to_read, 0u);
}

TEST_F(PlayedEngineTest, NothingIsToldOfOneThatWasStopped) {
  const RequestId first = Start(20, 50);
  Start(20, 5);
  for (int i = 0; i < 4; ++i) agenda_.RunNext();
  const std::size_t so_far = heard_[0].tokens;
  EXPECT_GT(so_far, 0u);
  engine_.Stop(first);
  engine_.Stop(first);
  RunAll();
  EXPECT_EQ(heard_[0].tokens, so_far);
  EXPECT_EQ(heard_[0].ended, 0);
  EXPECT_EQ(heard_[1].tokens, 5u);
  EXPECT_EQ(engine_.counters().cancelled, 1u);
}

}  // namespace
}  // namespace troupe
