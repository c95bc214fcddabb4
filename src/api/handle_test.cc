// Handles to requests and their callbacks, on a model. The callbacks alone: callback_gate_test.cc.
#include <troupe/model.h>

#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <future>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "api/tiny_model_for_test.h"

namespace troupe {
namespace {

TEST(Handle, ARequestIsShownTheLogitsOfEveryTokenBeforeItsText) {
  const std::unique_ptr<Model> model = OpenTiny();
  Request request = Ask("The kernel", 8);
  request.sampling.temperature = 0;
  std::vector<TokenId> chosen, likeliest;
  bool text_first = false;
  const Answer answer =
      model
          ->Start(request, {.on_piece =
                                [&](const Piece& piece) {
                                  text_first |= piece.tokens > chosen.size();
                                  return true;
                                },
                            .on_logits =
                                [&](TokenId token, std::span<const float> logits) {
                                  chosen.push_back(token);
                                  likeliest.push_back(static_cast<TokenId>(
                                      std::ranges::max_element(logits) - logits.begin()));
                                  return OkStatus();
                                }})
          ->Wait()
          .value();
  EXPECT_EQ(chosen, answer.tokens);
  EXPECT_EQ(likeliest, answer.tokens);
  EXPECT_FALSE(text_first);
}

TEST(Handle, AnErrorOfOnLogitsIsTheRequestsAndCancelledEndsItBeforeThatToken) {
  const std::unique_ptr<Model> model = OpenTiny();
  const auto wait_with = [&](const Status& third) {
    int calls = 0;
    return model
        ->Start(Ask("The kernel", 8), {.on_logits =
                                           [&](TokenId, std::span<const float>) {
                                             return ++calls == 3 ? third : OkStatus();
                                           }})
        ->Wait();
  };
  EXPECT_EQ(wait_with(Status(Code::kDataLoss, "disk full")).status().message(), "disk full");
  const Answer cancelled = wait_with(Status(Code::kCancelled, "enough")).value();
  EXPECT_EQ(cancelled.finish, FinishReason::kCancelled);
  EXPECT_EQ(cancelled.tokens.size(), 2u);
}

TEST(GenerationApi, CancellingKeepsWhatWasWritten) {
  const auto model = OpenTiny();
  Generation generation =
      model
          ->Start(Ask("The kernel", 64),
                  {.on_piece = [](const Piece& piece) { return piece.tokens < 3; }})
          .value();
  const Answer answer = generation.Wait().value();
  EXPECT_EQ(answer.finish, FinishReason::kCancelled);
  EXPECT_FALSE(answer.text.empty());
  generation.Cancel();
  generation.Cancel();
  EXPECT_EQ(generation.Wait()->text, answer.text);
}

TEST(GenerationApi, AnExceptionInACallbackCancelsItsRequestAlone) {
  const auto model = OpenTiny();
  const auto throwing = [](const Piece&) -> bool { throw 1; };
  EXPECT_EQ(model->Start(Ask("The kernel"), {.on_piece = throwing})->Wait()->finish,
            FinishReason::kCancelled);
  EXPECT_EQ(model->Start(Ask("The kernel"))->Wait()->finish, FinishReason::kLength);
}

TEST(GenerationApi, AHandleThatWasMovedFromSaysSo) {
  const auto model = OpenTiny();
  Generation generation = model->Start(Ask("The kernel")).value();
  Generation moved = std::move(generation);
  EXPECT_EQ(generation.Wait().status().code(), Code::kFailedPrecondition);  // NOLINT
  EXPECT_TRUE(generation.done());                                           // NOLINT
  generation.Cancel();                                                      // NOLINT
  EXPECT_TRUE(moved.Wait().ok());
  moved = model->Start(Ask("Debian")).value();
  EXPECT_TRUE(moved.Wait().ok());
}

TEST(GenerationApi, GenerationsOutliveTheirModel) {
  auto model = OpenTiny({.sequences = 1});
  std::promise<void> all_started;
  const auto close = [&, started = all_started.get_future().share()](const Piece&) {
    started.wait();
    model->Close();
    return true;
  };
  std::vector<Generation> generations;
  generations.push_back(model->Start(Ask("The kernel", 90), {.on_piece = close}).value());
  for (int i = 0; i < 3; ++i) generations.push_back(model->Start(Ask("The kernel", 90)).value());
  generations[2].Cancel();
  all_started.set_value();
  model->Close();
  model.reset();
  for (Generation& generation : generations) EXPECT_TRUE(generation.done());
  for (const std::size_t unlucky : {0, 1, 3}) {
    EXPECT_EQ(generations[unlucky].Wait().status().code(), Code::kCancelled);
  }
  EXPECT_EQ(generations[2].Wait()->finish, FinishReason::kCancelled) << "it was before the model";
  for (Generation& generation : generations) generation.Cancel();
}

TEST(GenerationApi, DestroyingAHandleCancelsItsRequest) {
  const auto model = OpenTiny({.sequences = 1});
  std::atomic<int> ends = 0;
  {
    const Generation dropped =
        model->Start(Ask("The kernel", 90), {.on_end = [&](const Result<Answer>&) { ++ends; }})
            .value();
  }
  EXPECT_TRUE(model->Start(Ask("The kernel", 2))->Wait().ok());
  EXPECT_EQ(model->metrics().requests_cancelled, 1u);
  EXPECT_EQ(ends, 0) << "nobody is there to be told";
}

TEST(GenerationApi, NoCallbackRunsOnceItsHandleIsDestroyedOrItsRequestCancelled) {
  const auto model = OpenTiny({.sequences = 1});
  for (const bool destroy : {false, true}) {
    std::promise<void> inside, leaving;
    std::atomic<bool> left = false;
    std::atomic<int> pieces = 0;
    const auto linger = [&](const Piece&) {
      if (++pieces > 1) return true;
      inside.set_value();
      leaving.get_future().wait();
      std::this_thread::sleep_for(std::chrono::milliseconds(50));
      left = true;
      return true;
    };
    std::optional<Generation> generation =
        model->Start(Ask("The kernel", 90), {.on_piece = linger}).value();
    inside.get_future().wait();
    leaving.set_value();
    if (destroy) {
      generation.reset();
    } else {
      generation->Cancel();
    }
    EXPECT_TRUE(left);
    EXPECT_TRUE(model->Start(Ask("The kernel", 2))->Wait().ok());
    EXPECT_EQ(pieces, 1);
  }
}

TEST(GenerationApi, ACancelledRequestShowsNothingMoreThoughItsAnswerHasIt) {
  const auto model = OpenTiny({.sequences = 2});
  Request request = Ask("The kernel", 60);
  const std::string whole = model->Start(request)->Wait()->text;
  request.stop = {whole + "?"};  // all of the text may be its beginning: it is held back
  int pieces = 0;
  std::optional<Generation> generation;
  Request beside = Ask("Debian", 20);
  beside.ignore_end = true;
  const auto start_and_cancel = [&](const Piece& piece) {  // between passes that both are in
    if (!generation) {
      generation =
          model->Start(request, {.on_piece = [&](const Piece&) { return ++pieces > 0; }}).value();
    } else if (piece.tokens > 10) {
      generation->Cancel();
    }
    return true;
  };
  EXPECT_TRUE(model->Start(beside, {.on_piece = start_and_cancel})->Wait().ok());
  const Answer answer = generation->Wait().value();
  EXPECT_EQ(answer.finish, FinishReason::kCancelled);
  EXPECT_FALSE(answer.text.empty());
  EXPECT_TRUE(whole.starts_with(answer.text));
  EXPECT_EQ(pieces, 0);
}

TEST(GenerationApi, AHandleMayBeDestroyedByItsOwnCallbacks) {
  const auto model = OpenTiny();
  for (const bool at_the_end : {false, true}) {
    std::promise<std::optional<Generation>*> handle;
    std::promise<void> destroyed;
    const auto destroy = [&] {
      handle.get_future().get()->reset();
      destroyed.set_value();
    };
    const auto on_piece = [&](const Piece&) {
      if (!at_the_end) destroy();
      return at_the_end;
    };
    std::optional<Generation> generation =
        model
            ->Start(Ask("The kernel", 8), {.on_piece = on_piece,
                                           .on_end =
                                               [&](const Result<Answer>&) {
                                                 if (at_the_end) destroy();
                                               }})
            .value();
    handle.set_value(&generation);
    destroyed.get_future().wait();
    EXPECT_FALSE(generation.has_value());
    // The engine's thread has left the callback, and what that captured, before it answers another.
    EXPECT_TRUE(model->Start(Ask("The kernel", 1))->Wait().ok());
  }
}

TEST(GenerationApi, ManyRequestsNeedNoThreadToWaitForTheirEnds) {
  const auto model = OpenTiny({.sequences = 4, .queue = 60});
  struct Connection {
    std::optional<Generation> generation;
    std::string streamed;
    std::promise<Result<Answer>> answer;
  };
  std::vector<Connection> connections(64);
  for (std::size_t i = 0; i < connections.size(); ++i) {
    Connection& one = connections[i];
    one.generation =
        model
            ->Start(
                Ask("The kernel", 4, i),
                {.on_piece =
                     [&one](const Piece& piece) {
                       one.streamed += piece.text;
                       return true;
                     },
                 .on_end = [&one](const Result<Answer>& answer) { one.answer.set_value(answer); }})
            .value();
  }
  for (Connection& one : connections) {
    const Result<Answer> answer = one.answer.get_future().get();  // set twice it would throw
    EXPECT_EQ(answer->text, one.streamed) << "the end comes after the last piece";
    EXPECT_TRUE(one.generation->done());
    EXPECT_EQ(one.generation->WaitFor(std::chrono::seconds(0))->value().text, answer->text);
  }
}

TEST(GenerationApi, ClosingTellsEveryRequestOfItsEnd) {
  const auto model = OpenTiny({.sequences = 1});
  std::atomic<int> cancelled = 0;
  std::vector<Generation> generations;
  for (int i = 0; i < 3; ++i) {
    generations.push_back(
        model
            ->Start(Ask("The kernel", 90), {.on_end =
                                                [&](const Result<Answer>& answer) {
                                                  cancelled +=
                                                      answer.status().code() == Code::kCancelled;
                                                }})
            .value());
  }
  model->Close();
  EXPECT_EQ(cancelled, 3);
}

TEST(GenerationApi, AWaitMayBeLimited) {
  const auto model = OpenTiny({.sequences = 1});
  std::promise<void> open;
  const std::shared_future<void> door = open.get_future().share();
  const auto hold = [door](const Piece&) {
    door.wait();
    return true;
  };
  Generation generation = model->Start(Ask("The kernel"), {.on_piece = hold}).value();
  EXPECT_FALSE(generation.WaitFor(std::chrono::milliseconds(10)).has_value());
  open.set_value();
  EXPECT_TRUE(generation.WaitFor(std::chrono::hours(1))->ok());
  const Generation moved = std::move(generation);
  EXPECT_EQ(generation.WaitFor(std::chrono::hours(1))->status().code(),  // NOLINT
            Code::kFailedPrecondition);
}

TEST(GenerationApi, WaitingInACallbackIsRefused) {
  const auto model = OpenTiny();
  std::promise<Code> code;
  std::promise<Generation*> itself;
  const auto ask_itself = [&, first = true](const Piece&) mutable {
    if (first) code.set_value(itself.get_future().get()->Wait().status().code());
    first = false;
    return true;
  };
  Generation generation = model->Start(Ask("The kernel"), {.on_piece = ask_itself}).value();
  itself.set_value(&generation);
  EXPECT_EQ(code.get_future().get(), Code::kFailedPrecondition);
  EXPECT_TRUE(generation.Wait().ok());
}

TEST(GenerationApi, ARequestPastItsTimeFails) {
  const auto model = OpenTiny();
  Request request = Ask("The kernel", 90);
  request.timeout = std::chrono::nanoseconds(1);
  EXPECT_EQ(model->Start(std::move(request))->Wait().status().code(), Code::kDeadlineExceeded);
}

}  // namespace
}  // namespace troupe
