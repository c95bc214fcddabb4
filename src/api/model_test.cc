#include <troupe/model.h>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <future>
#include <optional>
#include <stdexcept>
#include <thread>

#include "testing/no_more_threads.h"

namespace troupe {
namespace {

using testing::HasSubstr;
using testing::IsEmpty;

constexpr const char* kPath = TROUPE_SOURCE_DIR "/models/tiny-qwen2moe-q8_0.gguf";

std::unique_ptr<Model> OpenTiny(ModelOptions options = {}) {
  options.context = 96;
  options.threads = 2;
  return Model::Open(kPath, options).value();
}

Request Ask(std::string prompt, std::size_t tokens = 16, std::uint64_t seed = 1) {
  return {.prompt = std::move(prompt), .max_tokens = tokens, .sampling = {.seed = seed}};
}

TEST(ModelApi, AnswersAPromptAndStreamsExactlyItsText) {
  const auto model = OpenTiny();
  std::string streamed;
  std::size_t tokens = 0;
  Generation generation = model
                              ->Start(Ask("The kernel"),
                                      [&](const Piece& piece) {
                                        streamed += piece.text;
                                        tokens = piece.tokens;
                                        return true;
                                      })
                              .value();
  const Answer answer = generation.Wait().value();
  EXPECT_EQ(answer.text, streamed);
  EXPECT_FALSE(answer.text.empty());
  EXPECT_EQ(answer.tokens.size(), 16u);
  EXPECT_EQ(tokens, 16u);
  EXPECT_EQ(answer.finish, FinishReason::kLength);
  EXPECT_EQ(answer.usage.generated_tokens, 16u);
  EXPECT_EQ(answer.usage.expert_uses, (answer.usage.prompt_tokens + 15) * 8 * 4);
  EXPECT_EQ(generation.Wait()->text, answer.text) << "asked again";
}

TEST(ModelApi, RequestsOfSeveralThreadsGetWhatTheyGetAlone) {
  const auto model = OpenTiny({.sequences = 3});
  const std::vector<std::string> prompts = {"The kernel", "A driver of the device", "Debian"};
  std::vector<std::string> alone;
  for (std::size_t i = 0; i < prompts.size(); ++i) {
    alone.push_back(model->Start(Ask(prompts[i], 24, i))->Wait()->text);
  }
  std::vector<std::future<std::string>> together;
  for (std::size_t i = 0; i < prompts.size(); ++i) {
    together.push_back(std::async(
        std::launch::async, [&, i] { return model->Start(Ask(prompts[i], 24, i))->Wait()->text; }));
  }
  for (std::size_t i = 0; i < prompts.size(); ++i) EXPECT_EQ(together[i].get(), alone[i]);
  EXPECT_EQ(model->metrics().requests_finished, 6u);
}

TEST(ModelApi, ALittleMemoryGivesTheSameTextAsMuch) {
  const Plan plan = Model::PlanFor(kPath, {.context = 96, .threads = 2}).value();
  ASSERT_TRUE(plan.AllInMemory());
  const Bytes little(plan.total.count() - plan.experts.count() / 2);
  const auto small = OpenTiny({.memory = little, .storage = {.container = "none"}});
  EXPECT_FALSE(small->plan().AllInMemory());
  EXPECT_LE(small->plan().total, little);
  const Answer answer = small->Start(Ask("The kernel", 24))->Wait().value();
  EXPECT_GT(answer.usage.expert_misses, 0u);
  EXPECT_GT(answer.usage.bytes_read, 0u);
  EXPECT_EQ(answer.usage.not_exact, 0u);
  EXPECT_EQ(answer.text, OpenTiny()->Start(Ask("The kernel", 24))->Wait()->text);
}

TEST(ModelApi, DoesWhatItsPlanSaid) {
  const ModelOptions options{.context = 96, .threads = 2, .sequences = 2};
  const Plan planned = Model::PlanFor(kPath, options).value();
  const auto model = Model::Open(kPath, options).value();
  EXPECT_EQ(planned.context, 96u);
  EXPECT_EQ(planned.experts, model->plan().experts);
  EXPECT_EQ(planned.kv_cache, model->plan().kv_cache);
  EXPECT_EQ(model->plan().lossiness, "exact");
}

TEST(ModelApi, TextSurvivesTokensAndBack) {
  const auto model = OpenTiny();
  const std::vector<TokenId> tokens = model->Tokenize("The kernel is").value();
  EXPECT_EQ(model->Detokenize(tokens).value(), "The kernel is");
  EXPECT_EQ(model->Tokenize("\xFF").status().code(), Code::kInvalidArgument);
  EXPECT_EQ(model->Detokenize(std::vector<TokenId>{-1}).status().code(), Code::kInvalidArgument);
  EXPECT_EQ(model->Start({.prompt = tokens, .max_tokens = 4})->Wait()->tokens,
            model->Start({.prompt = "The kernel is", .max_tokens = 4})->Wait()->tokens);
}

TEST(ModelApi, RefusesWhatIsNoModelAndOptionsThatCannotBe) {
  EXPECT_EQ(Model::Open("/nowhere.gguf").status().code(), Code::kNotFound);
  EXPECT_EQ(Model::Open(TROUPE_SOURCE_DIR "/README.md").status().code(), Code::kInvalidArgument);
  EXPECT_EQ(Model::PlanFor(kPath, {.sequences = 0}).status().code(), Code::kInvalidArgument);
  EXPECT_EQ(Model::PlanFor(kPath, {.lossiness = Chain{"nonsense"}}).status().code(),
            Code::kInvalidArgument);
  EXPECT_EQ(Model::Open(kPath, {.memory = 1_MiB}).status().code(), Code::kResourceExhausted);
}

TEST(ModelApi, OpeningTellsHowFarItIsAndIsStoppedByFalseOrAnException) {
  for (const std::uint32_t threads : {1, 3}) {
    const ModelOptions options{.context = 96, .threads = threads};
    Bytes last, total;
    const auto watch = [&](Bytes done, Bytes all) {
      EXPECT_GT(done, last);
      EXPECT_LE(done, all);
      last = done;
      total = all;
      return true;
    };
    EXPECT_TRUE(Model::Open(kPath, options, watch).ok());
    EXPECT_GT(total, 100_KiB);
    int calls = 0;
    const auto refuse = [&](Bytes, Bytes) { return ++calls < 1; };
    const Status refused = Model::Open(kPath, options, refuse).status();
    EXPECT_EQ(refused.code(), Code::kCancelled);
    EXPECT_THAT(refused.message(), HasSubstr("stopped by its caller after"));
    EXPECT_EQ(calls, 1);
    const auto fail = [&](Bytes, Bytes) -> bool { throw std::runtime_error("no room to draw"); };
    EXPECT_EQ(Model::Open(kPath, options, fail).status().code(), Code::kCancelled);
  }
}

TEST(ModelApi, RefusesRequestsThatCanNeverBeAnswered) {
  const auto model = OpenTiny();
  const auto code = [&](Request request) {
    return model->Start(std::move(request)).status().code();
  };
  EXPECT_EQ(code({.prompt = std::vector<TokenId>()}), Code::kInvalidArgument);
  EXPECT_EQ(code({.prompt = std::vector<TokenId>{1 << 30}}), Code::kInvalidArgument);
  EXPECT_EQ(code({.prompt = std::vector<TokenId>(97, 5)}), Code::kResourceExhausted);
  EXPECT_EQ(code({.prompt = "a", .sampling = {.temperature = -1}}), Code::kInvalidArgument);
  EXPECT_EQ(code({.prompt = "a", .stop = {""}}), Code::kInvalidArgument);
  EXPECT_EQ(model->metrics().requests_refused, 5u);
}

TEST(ModelApi, MoreRequestsThanFitAreToldWhenToComeAgain) {
  const auto model = OpenTiny({.sequences = 1, .queue = 1});
  std::promise<void> open;
  const std::shared_future<void> door = open.get_future().share();
  const auto hold = [door](const Piece&) {
    door.wait();
    return true;
  };
  Generation first = model->Start(Ask("The kernel"), hold).value();
  Generation second = model->Start(Ask("The kernel")).value();
  const Status third = model->Start(Ask("The kernel")).status();
  EXPECT_EQ(third.code(), Code::kUnavailable);
  EXPECT_GT(third.retry_after(), 0);
  open.set_value();
  EXPECT_EQ(first.Wait()->text, second.Wait()->text);
  EXPECT_TRUE(model->Start(Ask("The kernel")).ok());
}

TEST(ModelApi, CancellingKeepsWhatWasWritten) {
  const auto model = OpenTiny();
  Generation generation =
      model->Start(Ask("The kernel", 64), [](const Piece& piece) { return piece.tokens < 3; })
          .value();
  const Answer answer = generation.Wait().value();
  EXPECT_EQ(answer.finish, FinishReason::kCancelled);
  EXPECT_FALSE(answer.text.empty());
  generation.Cancel();
  generation.Cancel();
  EXPECT_EQ(generation.Wait()->text, answer.text);
}

TEST(ModelApi, AnExceptionInACallbackCancelsItsRequestAlone) {
  const auto model = OpenTiny();
  const auto throwing = [](const Piece&) -> bool { throw 1; };
  EXPECT_EQ(model->Start(Ask("The kernel"), throwing)->Wait()->finish, FinishReason::kCancelled);
  EXPECT_EQ(model->Start(Ask("The kernel"))->Wait()->finish, FinishReason::kLength);
}

TEST(ModelApi, AHandleThatWasMovedFromSaysSo) {
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

TEST(ModelApi, GenerationsOutliveTheirModel) {
  auto model = OpenTiny({.sequences = 1});
  std::promise<void> all_started;
  const auto close = [&, started = all_started.get_future().share()](const Piece&) {
    started.wait();
    model->Close();
    return true;
  };
  std::vector<Generation> generations;
  generations.push_back(model->Start(Ask("The kernel", 90), close).value());
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

TEST(ModelApi, AClosedModelAnswersWhatNeedsNoPassAndStartsNothing) {
  const auto model = OpenTiny();
  EXPECT_TRUE(model->Start(Ask("The kernel", 2))->Wait().ok());
  model->Close();
  model->Close();
  EXPECT_EQ(model->Start(Ask("The kernel")).status().code(), Code::kFailedPrecondition);
  EXPECT_EQ(model->metrics().requests_finished, 1u);
  EXPECT_EQ(model->metrics().requests_refused, 1u);
  EXPECT_EQ(model->Detokenize(model->Tokenize("Debian").value()).value(), "Debian");
  EXPECT_EQ(model->plan().sequences, 1u);
}

TEST(ModelApi, OpensNoModelWhereTheSystemGivesNoThread) {
  const NoMoreThreads none;
  const Status status = Model::Open(kPath, {.context = 96, .threads = 2}).status();
  EXPECT_EQ(status.code(), Code::kResourceExhausted);
  EXPECT_THAT(status.message(), HasSubstr("no thread"));
}

TEST(ModelApi, DestroyingAHandleCancelsItsRequest) {
  const auto model = OpenTiny({.sequences = 1});
  std::atomic<int> ends = 0;
  {
    const Generation dropped =
        model->Start(Ask("The kernel", 90), {}, [&](const Result<Answer>&) { ++ends; }).value();
  }
  EXPECT_TRUE(model->Start(Ask("The kernel", 2))->Wait().ok());
  EXPECT_EQ(model->metrics().requests_cancelled, 1u);
  EXPECT_EQ(ends, 0) << "nobody is there to be told";
}

// What a callback refers to may die with the handle.
TEST(ModelApi, NoCallbackRunsOnceItsHandleIsDestroyedOrItsRequestCancelled) {
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
    std::optional<Generation> generation = model->Start(Ask("The kernel", 90), linger).value();
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

TEST(ModelApi, ACancelledRequestShowsNothingMoreThoughItsAnswerHasIt) {
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
      generation = model->Start(request, [&](const Piece&) { return ++pieces > 0; }).value();
    } else if (piece.tokens > 10) {
      generation->Cancel();
    }
    return true;
  };
  EXPECT_TRUE(model->Start(beside, start_and_cancel)->Wait().ok());
  const Answer answer = generation->Wait().value();
  EXPECT_EQ(answer.finish, FinishReason::kCancelled);
  EXPECT_FALSE(answer.text.empty());
  EXPECT_TRUE(whole.starts_with(answer.text));
  EXPECT_EQ(pieces, 0);
}

TEST(ModelApi, AHandleMayBeDestroyedByItsOwnCallbacks) {
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
    std::optional<Generation> generation = model
                                               ->Start(Ask("The kernel", 8), on_piece,
                                                       [&](const Result<Answer>&) {
                                                         if (at_the_end) destroy();
                                                       })
                                               .value();
    handle.set_value(&generation);
    destroyed.get_future().wait();
    EXPECT_FALSE(generation.has_value());
  }
}

TEST(ModelApi, ManyRequestsNeedNoThreadToWaitForTheirEnds) {
  const auto model = OpenTiny({.sequences = 4, .queue = 60});
  struct Connection {
    std::optional<Generation> generation;
    std::string streamed;
    std::promise<Result<Answer>> answer;
  };
  std::vector<Connection> connections(64);
  for (std::size_t i = 0; i < connections.size(); ++i) {
    Connection& one = connections[i];
    one.generation = model
                         ->Start(
                             Ask("The kernel", 4, i),
                             [&one](const Piece& piece) {
                               one.streamed += piece.text;
                               return true;
                             },
                             [&one](const Result<Answer>& answer) { one.answer.set_value(answer); })
                         .value();
  }
  for (Connection& one : connections) {
    const Result<Answer> answer = one.answer.get_future().get();  // set twice it would throw
    EXPECT_EQ(answer->text, one.streamed) << "the end comes after the last piece";
    EXPECT_TRUE(one.generation->done());
    EXPECT_EQ(one.generation->WaitFor(std::chrono::seconds(0))->value().text, answer->text);
  }
}

TEST(ModelApi, ClosingTellsEveryRequestOfItsEnd) {
  const auto model = OpenTiny({.sequences = 1});
  std::atomic<int> cancelled = 0;
  std::vector<Generation> generations;
  for (int i = 0; i < 3; ++i) {
    generations.push_back(model
                              ->Start(Ask("The kernel", 90), {},
                                      [&](const Result<Answer>& answer) {
                                        cancelled += answer.status().code() == Code::kCancelled;
                                      })
                              .value());
  }
  model->Close();
  EXPECT_EQ(cancelled, 3);
}

TEST(ModelApi, AWaitMayBeLimited) {
  const auto model = OpenTiny({.sequences = 1});
  std::promise<void> open;
  const std::shared_future<void> door = open.get_future().share();
  const auto hold = [door](const Piece&) {
    door.wait();
    return true;
  };
  Generation generation = model->Start(Ask("The kernel"), hold).value();
  EXPECT_FALSE(generation.WaitFor(std::chrono::milliseconds(10)).has_value());
  open.set_value();
  EXPECT_TRUE(generation.WaitFor(std::chrono::hours(1))->ok());
  const Generation moved = std::move(generation);
  EXPECT_EQ(generation.WaitFor(std::chrono::hours(1))->status().code(),  // NOLINT
            Code::kFailedPrecondition);
}

TEST(ModelApi, AModelMayBeClosedByItsOwnCallback) {
  std::unique_ptr<Model> model = OpenTiny();
  std::promise<void> started;
  const auto close = [&](const Piece&) {
    started.get_future().wait();
    const NoMoreThreads none;  // closing needs no other
    model.reset();
    return false;
  };
  Generation generation = model->Start(Ask("The kernel", 90), close).value();
  started.set_value();
  EXPECT_EQ(generation.Wait()->finish, FinishReason::kCancelled);
  EXPECT_EQ(model, nullptr);
}

TEST(ModelApi, WaitingInACallbackIsRefused) {
  const auto model = OpenTiny();
  std::promise<Code> code;
  std::promise<Generation*> itself;
  const auto ask_itself = [&, first = true](const Piece&) mutable {
    if (first) code.set_value(itself.get_future().get()->Wait().status().code());
    first = false;
    return true;
  };
  Generation generation = model->Start(Ask("The kernel"), ask_itself).value();
  itself.set_value(&generation);
  EXPECT_EQ(code.get_future().get(), Code::kFailedPrecondition);
  EXPECT_TRUE(generation.Wait().ok());
}

TEST(ModelApi, ARequestPastItsTimeFails) {
  const auto model = OpenTiny();
  Request request = Ask("The kernel", 90);
  request.timeout = std::chrono::nanoseconds(1);
  EXPECT_EQ(model->Start(std::move(request))->Wait().status().code(), Code::kDeadlineExceeded);
}

TEST(ModelApi, AnExactRequestOfALossyModelGetsTheExactAnswerBesideOthersThatDoNot) {
  const Plan plan = Model::PlanFor(kPath, {.context = 96, .threads = 2}).value();
  const Bytes little(plan.total.count() - plan.experts.count() / 2);
  const auto model =
      OpenTiny({.memory = little, .sequences = 2, .lossiness = Chain{"smoe:alpha=0.5+drop"}});
  EXPECT_THAT(model->plan().lossiness, HasSubstr("smoe"));
  Request lossy = Ask("The handbook", 40), exact = Ask("The kernel", 40);
  exact.exact = true;
  Generation beside = model->Start(lossy).value();
  const Answer answer = model->Start(exact)->Wait().value();
  EXPECT_GT(beside.Wait()->usage.not_exact, 0u);
  EXPECT_EQ(answer.usage.not_exact, 0u);
  EXPECT_EQ(answer.tokens, OpenTiny()->Start(exact)->Wait()->tokens);
}

}  // namespace
}  // namespace troupe
