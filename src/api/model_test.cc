#include <troupe/model.h>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <future>
#include <stdexcept>
#include <string>
#include <vector>

#include "api/tiny_model_for_test.h"
#include "base/sanitized.h"
#include "testing/no_more_threads.h"

namespace troupe {
namespace {

using testing::HasSubstr;

TEST(ModelApi, AnswersAPromptAndStreamsExactlyItsText) {
  const auto model = OpenTiny();
  std::string streamed;
  std::size_t tokens = 0;
  Generation generation = model
                              ->Start(Ask("The kernel"), {.on_piece =
                                                              [&](const Piece& piece) {
                                                                streamed += piece.text;
                                                                tokens = piece.tokens;
                                                                return true;
                                                              }})
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

TEST(ModelApi, ItsStateShowsTheRequestThatRunsAndEveryExpertInMemory) {
  const auto model = OpenTiny();
  Request request = Ask("The kernel", 60);
  request.ignore_end = true;
  Generation generation = model->Start(request).value();
  std::vector<RequestState> seen;
  while (seen.empty() && !generation.done()) seen = model->state(std::chrono::minutes(1)).requests;
  if (!seen.empty()) {
    EXPECT_EQ(seen.front().prompt_tokens, model->Tokenize("The kernel")->size());
    EXPECT_LT(seen.front().generated_tokens, 60u);
  }
  ASSERT_TRUE(generation.Wait().ok());
  const ModelState state = model->state(std::chrono::minutes(1));
  EXPECT_TRUE(state.requests.empty());
  EXPECT_EQ(state.experts.places, std::vector(8 * 32, ExpertPlace::kInMemory));
  model->Close();
  EXPECT_EQ(model->state(std::chrono::minutes(1)).experts.layers, 8u);
}

TEST(ModelApi, ALittleMemoryGivesTheSameTextAsMuch) {
  const auto small = OpenTinyWithFew({.storage = {.container = "none"}});
  ASSERT_NE(small, nullptr);
  EXPECT_LE(small->plan().total, small->plan().budget);
  const Answer answer = small->Start(Ask("The kernel", 24))->Wait().value();
  EXPECT_GT(answer.usage.experts.misses, 0u);
  EXPECT_GT(answer.usage.experts.bytes_read, 0u);
  EXPECT_EQ(answer.usage.experts.NotExact(), 0u);
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

TEST(ModelApi, ATextsVectorIsTheSameWhateverTheMemoryAndHoweverItsTokensAreCut) {
  const std::string text =
      "A kernel is the part of a system that the others ask for what they need.";
  for (const Pooling pooling : {Pooling::kMean, Pooling::kLast}) {
    const Request request{.prompt = text, .embed = pooling};
    const Answer whole = OpenTiny()->Start(request)->Wait().value();
    ASSERT_FALSE(whole.embedding.empty());
    double squares = 0;
    for (const float x : whole.embedding) squares += x * x;
    EXPECT_NEAR(squares, 1, 1e-5);
    EXPECT_EQ(whole.text, "");
    // Passes of one token or two, among others that generate, and the text read before.
    // A sanitizer alone takes more than that.
    const auto model =
        OpenTiny({.memory = kSanitized ? 4096_MiB : 48_MiB, .sequences = 3, .pass_seconds = 1e-6});
    const Generation before = model->Start(Ask(text, 40)).value();
    auto between = model->Start(request), again = model->Start(request);
    EXPECT_EQ(between->Wait()->embedding, whole.embedding);
    EXPECT_EQ(again->Wait()->embedding, whole.embedding);
    EXPECT_EQ(again->Wait()->usage.cached_tokens, 0u);
  }
}

TEST(ModelApi, TextSurvivesTokensAndBack) {
  const auto model = OpenTiny();
  const std::vector<TokenId> tokens = model->Tokenize("The kernel is").value();
  EXPECT_EQ(model->Detokenize(tokens).value(), "The kernel is");
  EXPECT_EQ(model->Tokenize("\xFF").status().code(), Code::kInvalidArgument);
  EXPECT_EQ(model->PromptTokens(std::string("The kernel is")).value(), tokens);
  EXPECT_EQ(model->PromptTokens(tokens).value(), tokens);
  const Prompt chat = std::vector<Message>{{.role = "user", .content = "The kernel is"}};
  EXPECT_EQ(model->PromptTokens(chat).value().size(),
            model->Start({.prompt = chat, .max_tokens = 1})->Wait()->usage.prompt_tokens);
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

TEST(ModelApi, AnAnswerGoesOnBehindItsFirstTokensToTheSameBytes) {
  const auto model = OpenTiny();
  const Answer whole = model->Start(Ask("The kernel", 16))->Wait().value();
  for (const std::size_t cut : {1, 7, 15}) {
    Request request = Ask("The kernel", 16);
    request.begun.assign(whole.tokens.begin(),
                         whole.tokens.begin() + static_cast<std::ptrdiff_t>(cut));
    std::size_t least = 100;
    const auto note = [&](const Piece& piece) {
      least = std::min(least, piece.tokens);
      return true;
    };
    const Answer answer = model->Start(std::move(request), {.on_piece = note})->Wait().value();
    EXPECT_EQ(answer.tokens, whole.tokens) << cut;
    EXPECT_EQ(answer.text, whole.text) << cut;
    EXPECT_GT(least, cut);
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
  EXPECT_EQ(code({.prompt = "a", .max_tokens = 1, .begun = {5, 6}}), Code::kInvalidArgument);
  EXPECT_EQ(code({.prompt = "a", .embed = Pooling::kMean, .begun = {5}}), Code::kInvalidArgument);
  EXPECT_EQ(model->metrics().requests_refused, 7u);
}

TEST(ModelApi, MoreRequestsThanFitAreToldWhenToComeAgain) {
  const auto model = OpenTiny({.sequences = 1, .queue = 1});
  std::promise<void> open;
  const std::shared_future<void> door = open.get_future().share();
  const auto hold = [door](const Piece&) {
    door.wait();
    return true;
  };
  Generation first = model->Start(Ask("The kernel"), {.on_piece = hold}).value();
  Generation second = model->Start(Ask("The kernel")).value();
  const Status third = model->Start(Ask("The kernel")).status();
  EXPECT_EQ(third.code(), Code::kUnavailable);
  EXPECT_GT(third.retry_after(), 0);
  open.set_value();
  EXPECT_EQ(first.Wait()->text, second.Wait()->text);
  EXPECT_TRUE(model->Start(Ask("The kernel")).ok());
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

// What a callback refers to may die with the handle.
TEST(ModelApi, AModelMayBeClosedByItsOwnCallback) {
  std::unique_ptr<Model> model = OpenTiny();
  std::promise<void> started;
  const auto close = [&](const Piece&) {
    started.get_future().wait();
    const NoMoreThreads none;  // closing needs no other
    model.reset();
    return false;
  };
  Generation generation = model->Start(Ask("The kernel", 90), {.on_piece = close}).value();
  started.set_value();
  EXPECT_EQ(generation.Wait()->finish, FinishReason::kCancelled);
  EXPECT_EQ(model, nullptr);
}

TEST(ModelApi, AnExactRequestOfALossyModelGetsTheExactAnswerBesideOthersThatDoNot) {
  const auto model = OpenTinyWithFew({.sequences = 2, .lossiness = Chain{"smoe:alpha=0.5+drop"}});
  ASSERT_NE(model, nullptr);
  EXPECT_THAT(model->plan().lossiness, HasSubstr("smoe"));
  Request lossy = Ask("The handbook", 40), exact = Ask("The kernel", 40);
  exact.exact = true;
  Generation beside = model->Start(lossy).value();
  const Answer answer = model->Start(exact)->Wait().value();
  EXPECT_GT(beside.Wait()->usage.experts.NotExact(), 0u);
  EXPECT_EQ(answer.usage.experts.NotExact(), 0u);
  EXPECT_EQ(answer.tokens, OpenTiny()->Start(exact)->Wait()->tokens);
  // Nobody has measured what this chain loses, so it is more than any request allows.
  Request careful = Ask("The kernel", 40);
  careful.most_loss = 0.5;
  EXPECT_EQ(model->Start(careful)->Wait()->tokens, answer.tokens);
}

}  // namespace
}  // namespace troupe
