// A BatchLoop over a toy model (fake_runner_for_test.h), and what each of its requests would get
// that had the model to itself.
#pragma once

#include <gtest/gtest.h>

#include <map>
#include <memory>
#include <span>
#include <utility>
#include <vector>

#include "runtime/batch_loop.h"
#include "runtime/fake_runner_for_test.h"
#include "text/tiny_vocab_for_test.h"

namespace troupe {

inline constexpr std::size_t kByteVocabulary = 256;  // the bytes: text of any kind

class BatchLoopTest : public testing::Test {
 protected:
  BatchLoopTest() : tokenizer_(MakeTokenizer(TinyByteLevelVocab()).value()) {}

  // What a request gets that has the model to itself.
  Answer Alone(const BatchRequest& request) const {
    const FakeRunner model({.vocabulary = kByteVocabulary});
    if (request.embed) {
      EmbeddingSum sum(*request.embed);
      for (std::size_t i = 0; i < request.prompt.size(); ++i) {
        sum.Add(model.LogitsAfter(std::span(request.prompt).first(i + 1)));
      }
      Answer answer;
      answer.embedding = sum.Value();
      return answer;
    }
    TextGeneration generation = TextGeneration::Make(*tokenizer_, request.prompt, request.options,
                                                     {.capacity = 512}, clock_)
                                    .value();
    SamplerScratch scratch;
    std::vector<TokenId> fed = request.prompt;
    fed.insert(fed.end(), request.options.begun.begin(), request.options.begun.end());
    generation.Read(fed.size());
    while (!generation.ended()) {
      for (const TokenId token : generation.NextTokens(1)) fed.push_back(token);
      EXPECT_TRUE(generation.Accept(model.LogitsAfter(fed), scratch).ok());
    }
    return std::move(generation).TakeAnswer();
  }

  std::shared_ptr<Ticket> Add(BatchLoop& loop, RequestId id, BatchRequest request) const {
    EXPECT_TRUE(loop.Check(request).ok());
    auto ticket = std::make_shared<Ticket>(id);
    loop.Add(ticket, std::move(request), clock_.Now());
    return ticket;
  }
  void StepInto(BatchLoop& loop) {
    for (EndedRequest& ended : loop.Step()) {
      const RequestId id = ended.ticket->id();
      EXPECT_TRUE(answers_.emplace(id, std::move(ended.answer)).second) << "ended twice";
    }
  }
  void RunToEnd(BatchLoop& loop) {
    for (int step = 0; loop.size() > 0; ++step) {
      ASSERT_LT(step, 10'000) << "requests that never end";
      StepInto(loop);
    }
  }
  const Result<Answer>& AnswerOf(RequestId id) const { return answers_.at(id); }

  std::unique_ptr<Tokenizer> tokenizer_;
  ManualClock clock_;
  std::map<RequestId, Result<Answer>> answers_;
};

}  // namespace troupe
