// Requests of a BatchLoop that do not come to the end of their answers: cancelled, too late, or
// with an expert that cannot be read.
#include <gtest/gtest.h>

#include <algorithm>
#include <memory>
#include <span>
#include <vector>

#include "runtime/batch_loop_for_test.h"

namespace troupe {
namespace {

TEST_F(BatchLoopTest, OnePassIsEnoughToCancel) {
  FakeRunner runner({.vocabulary = kByteVocabulary});
  BatchLoop loop(runner, *tokenizer_, clock_, {});
  const auto ticket = Add(loop, 1, {.prompt = {1}, .options = {.max_tokens = 400}});
  StepInto(loop);
  StepInto(loop);
  ticket->Cancel();
  ticket->Cancel();
  StepInto(loop);
  EXPECT_EQ(loop.size(), 0u);
  EXPECT_EQ(runner.passes(), 2u);
  EXPECT_EQ(AnswerOf(1)->finish, FinishReason::kCancelled);
  EXPECT_EQ(AnswerOf(1)->tokens.size(), 2u);
  EXPECT_EQ(loop.counters().cancelled, 1u);
}

TEST_F(BatchLoopTest, APassWhoseRequestsAreAllCancelledMeanwhileIsAbandoned) {
  std::vector<std::shared_ptr<Ticket>> tickets;
  std::size_t cancelled = 0;  // of the tickets, in the third pass and in the fourth
  std::size_t passes = 0;
  FakeRunner runner({.vocabulary = kByteVocabulary, .fails = [&](std::span<const PassRows>) {
                       if (++passes > 2 && cancelled < 2) tickets[cancelled++]->Cancel();
                       return false;
                     }});
  BatchLoop loop(runner, *tokenizer_, clock_, {});
  for (RequestId id = 0; id < 2; ++id) {
    tickets.push_back(Add(loop, id, {.prompt = {1}, .options = {.max_tokens = 400}}));
  }
  for (int step = 0; step < 3; ++step) StepInto(loop);
  EXPECT_EQ(loop.counters().abandoned_passes, 0u);  // somebody wanted the third
  for (int step = 0; step < 2; ++step) StepInto(loop);
  EXPECT_EQ(loop.size(), 0u);
  EXPECT_EQ(loop.counters().abandoned_passes, 1u);
  EXPECT_EQ(loop.counters().failed_passes, 0u);
  EXPECT_EQ(loop.counters().cancelled, 2u);
  for (RequestId id = 0; id < 2; ++id) {
    EXPECT_EQ(AnswerOf(id)->finish, FinishReason::kCancelled);
    EXPECT_EQ(AnswerOf(id)->tokens.size(), 2u + id);  // what its last pass made is not taken
  }
}

TEST_F(BatchLoopTest, ARequestCancelledBeforeAllAreEndedKeepsItsAnswer) {
  FakeRunner runner({.limits = {.rows = 8, .sequences = 2, .context = 512}});
  BatchLoop loop(runner, *tokenizer_, clock_, {});
  std::vector<std::shared_ptr<Ticket>> tickets;
  for (RequestId id = 0; id < 4; ++id) {  // two run, two wait
    tickets.push_back(Add(loop, id, {.prompt = {1}, .options = {.max_tokens = 400}}));
  }
  StepInto(loop);
  tickets[0]->Cancel();
  tickets[2]->Cancel();
  for (EndedRequest& ended : loop.EndAll(Status(Code::kUnavailable, "closed"))) {
    answers_.emplace(ended.ticket->id(), std::move(ended.answer));
  }
  ASSERT_EQ(answers_.size(), 4u);
  EXPECT_EQ(AnswerOf(0)->finish, FinishReason::kCancelled);
  EXPECT_EQ(AnswerOf(0)->tokens.size(), 1u);
  EXPECT_EQ(AnswerOf(1).status().code(), Code::kUnavailable);
  EXPECT_EQ(AnswerOf(2)->finish, FinishReason::kCancelled);
  EXPECT_EQ(AnswerOf(3).status().code(), Code::kUnavailable);
  EXPECT_EQ(loop.counters().cancelled, 2u);
  EXPECT_EQ(loop.counters().failed, 2u);
}

TEST_F(BatchLoopTest, AWaitingRequestIsCancelledWithoutAPass) {
  FakeRunner runner({.limits = {.rows = 8, .sequences = 1, .context = 512}});
  BatchLoop loop(runner, *tokenizer_, clock_, {});
  Add(loop, 1, {.prompt = {1}, .options = {.max_tokens = 3}});
  Add(loop, 2, {.prompt = {1}, .options = {.max_tokens = 3}})->Cancel();
  StepInto(loop);
  EXPECT_EQ(AnswerOf(2)->finish, FinishReason::kCancelled);
  EXPECT_EQ(AnswerOf(2)->usage.prompt_tokens, 0u);
  RunToEnd(loop);
  EXPECT_TRUE(AnswerOf(1).ok());
}

TEST_F(BatchLoopTest, AnExpertThatCannotBeReadFailsOnlyWhoNeedsIt) {
  FakeRunner runner({.vocabulary = kByteVocabulary, .fails = [](std::span<const PassRows> rows) {
                       return std::ranges::count(rows, RequestId{2}, &PassRows::request) > 0;
                     }});
  BatchLoop loop(runner, *tokenizer_, clock_, {});
  for (RequestId id = 1; id <= 3; ++id) {
    Add(loop, id, {.prompt = {1, 2}, .options = {.max_tokens = 5}});
  }
  RunToEnd(loop);
  EXPECT_TRUE(AnswerOf(1).ok());
  EXPECT_EQ(AnswerOf(2).status().message(), "an expert cannot be read");
  EXPECT_TRUE(AnswerOf(3).ok());
  EXPECT_EQ(loop.counters().failed, 1u);
  EXPECT_EQ(loop.counters().failed_passes, 2u);  // together, and request 2 alone
  // What a failed pass has read counts as well, and to whom it was read for.
  EXPECT_EQ(loop.counters().experts.reads, runner.reads());
  EXPECT_EQ(AnswerOf(1)->usage.experts.reads, 6u);  // five passes, and the one that failed
}

TEST_F(BatchLoopTest, ARequestIsEndedAtItsDeadline) {
  FakeRunner runner({.vocabulary = kByteVocabulary, .clock = &clock_});
  BatchLoop loop(runner, *tokenizer_, clock_, {});
  BatchRequest request{.prompt = {1}, .options = {.max_tokens = 400}};
  request.deadline = clock_.Now() + 10'000'000;  // a row takes a millisecond
  Add(loop, 1, std::move(request));
  RunToEnd(loop);
  EXPECT_EQ(AnswerOf(1).status().code(), Code::kDeadlineExceeded);
  EXPECT_EQ(runner.passes(), 11u);
}

}  // namespace
}  // namespace troupe
