#include "api/callback_gate.h"

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

TEST(CallbackGate, WhatWasReadIsToldUntilNoMoreIsWanted) {
  std::vector<std::size_t> told;
  CallbackGate gate({.on_read = [&](std::size_t read, std::size_t all) {
    EXPECT_EQ(all, 9u);
    told.push_back(read);
  }});
  EXPECT_TRUE(gate.Read(4, 9));
  EXPECT_TRUE(gate.Read(9, 9));
  gate.StopPieces();
  EXPECT_FALSE(gate.Read(9, 9));
  EXPECT_EQ(told, (std::vector<std::size_t>{4, 9}));
}

TEST(CallbackGate, ThePromptIsShownUntilNoMoreIsWantedOrItThrows) {
  int told = 0;
  const std::vector<float> logits = {1, 2};
  CallbackGate gate({.on_prompt = [&](TokenId token, std::span<const float> shown) {
    EXPECT_EQ(shown.size(), 2u);
    ++told;
    if (token == 9) throw std::runtime_error("enough");
  }});
  EXPECT_TRUE(gate.shows_prompt());
  EXPECT_FALSE(CallbackGate({}).shows_prompt());
  gate.ShowPrompt(1, logits);
  gate.ShowPrompt(9, logits);
  gate.ShowPrompt(2, logits);
  EXPECT_EQ(told, 2);
  EXPECT_FALSE(gate.Read(1, 2));  // and the request is cancelled
}

using testing::ElementsAre;

// Long enough that a Stop that does not wait has returned.
constexpr std::chrono::milliseconds kAWhile(50);

TEST(CallbackGate, PiecesComeWithTheTokensTheyAreOfAndTheAnswerAfterThem) {
  std::vector<std::string> told;
  CallbackGate gate(
      {.on_piece =
           [&](const Piece& piece) {
             told.push_back(std::string(piece.text) + std::to_string(piece.tokens));
             return true;
           },
       .on_end = [&](const Result<Answer>& answer) { told.push_back("end " + answer->text); }});
  EXPECT_TRUE(gate.Choose(7, {}).ok());
  EXPECT_TRUE(gate.Show("a"));
  EXPECT_TRUE(gate.Choose(7, {}).ok());
  EXPECT_TRUE(gate.Choose(7, {}).ok());
  EXPECT_TRUE(gate.Show("b"));
  Answer result;
  result.text = "ab";
  gate.End(result);
  EXPECT_THAT(told, ElementsAre("a1", "b3", "end ab"));
}

TEST(CallbackGate, LogitsComeWithTheirTokenAndAnErrorIsPassedOn) {
  std::vector<TokenId> told;
  CallbackGate gate({.on_logits = [&](TokenId token, std::span<const float> logits) -> Status {
    told.push_back(token + static_cast<TokenId>(logits.size()));
    if (token == 9) return Status(Code::kDataLoss, "disk full");
    if (token == 10) throw 1;
    return OkStatus();
  }});
  const std::vector<float> logits(100);
  EXPECT_TRUE(gate.Choose(8, logits).ok());
  EXPECT_EQ(gate.Choose(9, logits).message(), "disk full");
  EXPECT_EQ(gate.Choose(10, logits).code(), Code::kInternal);
  gate.StopPieces();
  EXPECT_EQ(gate.Choose(9, logits).code(), Code::kCancelled) << "who wants no more is not asked";
  EXPECT_THAT(told, ElementsAre(108, 109, 110));
}

TEST(CallbackGate, AFailureIsTold) {
  Status told;
  CallbackGate gate({.on_end = [&](const Result<Answer>& answer) { told = answer.status(); }});
  EXPECT_TRUE(gate.Show("a")) << "nobody who listens is nobody who has had enough";
  gate.End(Status(Code::kDataLoss, "x"));
  EXPECT_EQ(told.code(), Code::kDataLoss);
}

TEST(CallbackGate, AnExceptionIsNoMoreWantedAndDoesNotPass) {
  CallbackGate gate({.on_piece = [](const Piece&) -> bool { throw 1; },
                     .on_end = [](const Result<Answer>&) { throw 2; }});
  EXPECT_FALSE(gate.Show("a"));
  gate.End(Answer());
}

TEST(CallbackGate, StoppedPiecesAreNotShownAndTheEndStillIs) {
  int pieces = 0, ends = 0;
  CallbackGate gate({.on_piece = [&](const Piece&) { return ++pieces > 0; },
                     .on_end = [&](const Result<Answer>&) { ++ends; }});
  gate.StopPieces();
  EXPECT_FALSE(gate.Show("a"));
  gate.End(Answer());
  EXPECT_EQ(pieces, 0);
  EXPECT_EQ(ends, 1);
}

TEST(CallbackGate, AfterAllWasStoppedNothingIsTold) {
  int calls = 0;
  CallbackGate gate({.on_piece = [&](const Piece&) { return ++calls > 0; },
                     .on_end = [&](const Result<Answer>&) { ++calls; }});
  gate.StopAll();
  gate.StopPieces();  // does not bring the end back
  EXPECT_FALSE(gate.Show("a"));
  gate.End(Answer());
  EXPECT_EQ(calls, 0);
}

TEST(CallbackGate, StoppingWaitsForACallUnderWay) {
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
    CallbackGate gate({.on_piece = [&](const Piece&) { return work(); },
                       .on_end = [&](const Result<Answer>&) { work(); }});
    std::thread engine([&] {
      if (at_the_end) {
        gate.End(Answer());
      } else {
        gate.Show("a");
      }
    });
    inside.get_future().wait();
    stopping.set_value();
    if (at_the_end) {
      gate.StopAll();
    } else {
      gate.StopPieces();
    }
    EXPECT_TRUE(left);
    engine.join();
  }
}

TEST(CallbackGate, ACallMayStopItself) {
  std::unique_ptr<CallbackGate> gate;
  int calls = 0;
  gate =
      std::make_unique<CallbackGate>(Callbacks{.on_piece =
                                                   [&](const Piece&) {
                                                     gate->StopAll();
                                                     return ++calls > 0;
                                                   },
                                               .on_end = [&](const Result<Answer>&) { ++calls; }});
  gate->Show("a");
  gate->Show("b");
  gate->End(Answer());
  EXPECT_EQ(calls, 1);
}

// A connection that holds the handle whose callbacks hold the connection must not live for ever.
TEST(CallbackGate, AreLetGoAfterTheEndAndMayThenStopAll) {
  struct Held {
    ~Held() { gate->StopAll(); }
    CallbackGate* gate = nullptr;
  };
  auto held = std::make_shared<Held>();
  const std::weak_ptr<Held> alive = held;
  CallbackGate gate({.on_piece = [held](const Piece&) { return held != nullptr; },
                     .on_end = [held](const Result<Answer>&) {}});
  held->gate = &gate;
  held.reset();
  gate.End(Answer());
  EXPECT_TRUE(alive.expired());
}

}  // namespace
}  // namespace troupe
