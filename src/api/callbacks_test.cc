#include "api/callbacks.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <future>
#include <memory>
#include <string>
#include <thread>
#include <vector>

namespace troupe {
namespace {

using testing::ElementsAre;

// Long enough that a Stop that does not wait has returned.
constexpr std::chrono::milliseconds kAWhile(50);

TEST(Callbacks, PiecesComeWithTheTokensTheyAreOfAndTheAnswerAfterThem) {
  std::vector<std::string> told;
  Callbacks callbacks(
      [&](const Piece& piece) {
        told.push_back(std::string(piece.text) + std::to_string(piece.tokens));
        return true;
      },
      [&](const Result<Answer>& answer) { told.push_back("end " + answer->text); });
  callbacks.CountToken();
  EXPECT_TRUE(callbacks.Show("a"));
  callbacks.CountToken();
  callbacks.CountToken();
  EXPECT_TRUE(callbacks.Show("b"));
  GenerateResult result;
  result.text = "ab";
  callbacks.End(result);
  EXPECT_THAT(told, ElementsAre("a1", "b3", "end ab"));
}

TEST(Callbacks, AFailureIsTold) {
  Status told;
  Callbacks callbacks({}, [&](const Result<Answer>& answer) { told = answer.status(); });
  EXPECT_TRUE(callbacks.Show("a")) << "nobody who listens is nobody who has had enough";
  callbacks.End(Status(Code::kDataLoss, "x"));
  EXPECT_EQ(told.code(), Code::kDataLoss);
}

TEST(Callbacks, AnExceptionIsNoMoreWantedAndDoesNotPass) {
  Callbacks callbacks([](const Piece&) -> bool { throw 1; },
                      [](const Result<Answer>&) { throw 2; });
  EXPECT_FALSE(callbacks.Show("a"));
  callbacks.End(GenerateResult());
}

TEST(Callbacks, StoppedPiecesAreNotShownAndTheEndStillIs) {
  int pieces = 0, ends = 0;
  Callbacks callbacks([&](const Piece&) { return ++pieces > 0; },
                      [&](const Result<Answer>&) { ++ends; });
  callbacks.StopPieces();
  EXPECT_FALSE(callbacks.Show("a"));
  callbacks.End(GenerateResult());
  EXPECT_EQ(pieces, 0);
  EXPECT_EQ(ends, 1);
}

TEST(Callbacks, AfterAllWasStoppedNothingIsTold) {
  int calls = 0;
  Callbacks callbacks([&](const Piece&) { return ++calls > 0; },
                      [&](const Result<Answer>&) { ++calls; });
  callbacks.StopAll();
  callbacks.StopPieces();  // does not bring the end back
  EXPECT_FALSE(callbacks.Show("a"));
  callbacks.End(GenerateResult());
  EXPECT_EQ(calls, 0);
}

TEST(Callbacks, StoppingWaitsForACallUnderWay) {
  for (const bool at_the_end : {false, true}) {
    std::promise<void> inside;
    std::promise<void> stopping;
    std::atomic<bool> left = false;
    const auto work = [&] {
      inside.set_value();
      stopping.get_future().wait();
      std::this_thread::sleep_for(kAWhile);
      left = true;
      return true;
    };
    Callbacks callbacks([&](const Piece&) { return work(); },
                        [&](const Result<Answer>&) { work(); });
    std::thread engine([&] {
      if (at_the_end) {
        callbacks.End(GenerateResult());
      } else {
        callbacks.Show("a");
      }
    });
    inside.get_future().wait();
    stopping.set_value();
    if (at_the_end) {
      callbacks.StopAll();
    } else {
      callbacks.StopPieces();
    }
    EXPECT_TRUE(left);
    engine.join();
  }
}

TEST(Callbacks, ACallMayStopItself) {
  std::unique_ptr<Callbacks> callbacks;
  int calls = 0;
  callbacks = std::make_unique<Callbacks>(
      [&](const Piece&) {
        callbacks->StopAll();
        return ++calls > 0;
      },
      [&](const Result<Answer>&) { ++calls; });
  callbacks->Show("a");
  callbacks->Show("b");
  callbacks->End(GenerateResult());
  EXPECT_EQ(calls, 1);
}

// A connection that holds the handle whose callbacks hold the connection must not live for ever.
TEST(Callbacks, AreLetGoAfterTheEndAndMayThenStopAll) {
  struct Held {
    ~Held() { callbacks->StopAll(); }
    Callbacks* callbacks = nullptr;
  };
  auto held = std::make_shared<Held>();
  const std::weak_ptr<Held> alive = held;
  Callbacks callbacks([held](const Piece&) { return held != nullptr; },
                      [held](const Result<Answer>&) {});
  held->callbacks = &callbacks;
  held.reset();
  callbacks.End(GenerateResult());
  EXPECT_TRUE(alive.expired());
}

}  // namespace
}  // namespace troupe
