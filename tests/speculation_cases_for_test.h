// Answers with drafts against answers without: requests drawn at random on one model, some at a
// time on engines with drafts, each compared with what it gets alone from an engine that holds
// every expert and drafts nothing.
#pragma once

#include <gtest/gtest.h>

#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/rng.h"
#include "runtime/batch_loop.h"
#include "runtime/engine_runner.h"
#include "runtime/plain_answer_for_test.h"
#include "text/grammar/gbnf.h"
#include "text/grammar/token_constraint.h"

namespace troupe {

inline constexpr std::uint32_t kSpeculationContext = 160;
inline constexpr std::uint32_t kSpeculationSequences = 4;

// Passes take any time, so that the governor lets anything ride.
class JumpyClock final : public Clock {
 public:
  explicit JumpyClock(std::uint64_t seed) : rng_(seed) {}
  Nanos Now() const override {
    return now_ += static_cast<Nanos>(1 + rng_.Below(1 + rng_.Below(1'000'000)));
  }

 private:
  mutable Rng rng_;
  mutable Nanos now_ = 0;
};

inline constexpr std::string_view kSpeculationGrammars[] = {
    "",
    "",
    "root ::= \"{\\\"driver\\\":\" [0-9]+ \",\\\"device\\\":\\\"\" [a-z]* \"\\\"}\"",
    "root ::= (\"the kernel \" | \"the driver \")+",
};

class SpeculationCases {
 public:
  explicit SpeculationCases(std::string model)
      : model_(std::move(model)), plain_(Open({.threads = 2, .chunk = 64})) {
    const auto vocab = MakeVocabTrie(plain_->tokenizer());
    for (const std::string_view grammar : kSpeculationGrammars) {
      masks_.push_back(grammar.empty()
                           ? nullptr
                           : std::make_shared<TokenMasks>(
                                 Automaton::Compile(ParseGbnf(grammar).value()).value(), vocab));
    }
  }

  // An engine of the model, for as many sequences as are asked at once.
  std::unique_ptr<Engine> Open(EngineOptions options) const {
    options.context = kSpeculationContext;
    options.sequences = kSpeculationSequences;
    return Engine::Open(model_, options).value();
  }

  // Some requests, one of them at least, on one engine with these drafters; gives how many.
  std::size_t PlaySome(Engine& engine, const std::string& drafters, Rng& rng) {
    std::vector<Case> together(1 + rng.Below(kSpeculationSequences));
    for (Case& one : together) one = Draw(rng);
    Play(engine, together, *ParseDraftChoice(drafters), rng);
    return together.size();
  }

  const SpeculationUse& drafts() const { return drafts_; }
  const DraftedTokens& By(DraftSource source) const {
    return drafts_.by_source[static_cast<std::size_t>(source)];
  }
  std::uint64_t draft_reads_used() const { return draft_reads_used_; }

 private:
  struct Case {
    BatchRequest request;
    std::size_t grammar = 0;
    std::vector<TokenId> plain;  // its answer without drafts
    std::string text;
    bool cancelled = false;
  };

  Case Draw(Rng& rng) {
    constexpr std::string_view kTexts[] = {
        "The kernel", "int driver(int device) { return device; } int driver(int",
        "the driver of the device of the driver of the", "1 2 3 1 2 3 1 2"};
    Case one;
    GenerateOptions& options = one.request.options;
    one.request.prompt = plain_->tokenizer().Encode(kTexts[rng.Below(4)]).value();
    options.max_tokens = 1 + rng.Below(40);
    options.ignore_end = rng.Below(3) != 0;
    options.sampler.temperature = rng.Below(2) == 0 ? 0 : 0.2 + rng.Uniform();
    options.sampler.seed = rng.Next();
    if (rng.Below(3) == 0) options.sampler.repetition_penalty = 1 + 0.3 * rng.Uniform();
    if (rng.Below(4) == 0) options.sampler.frequency_penalty = rng.Uniform();
    if (rng.Below(3) == 0) options.stop = {"driver", "e d"};
    one.grammar = rng.Below(std::size(kSpeculationGrammars));
    one.cancelled = rng.Below(8) == 0;
    SetConstraint(one);
    Session session = Session::Create(*plain_).value();
    const Answer answer = PlainAnswer(session, plain_->tokenizer(), one.request.prompt, options);
    one.plain = answer.tokens;
    one.text = answer.text;
    SetConstraint(one);
    if (rng.Below(2) == 0) {
      options.expected = answer.tokens;
      for (TokenId& token : options.expected) {
        if (rng.Below(6) == 0) token = static_cast<TokenId>(rng.Below(400));
      }
    }
    return one;
  }
  // An answer moves its constraint, so each has one of its own.
  void SetConstraint(Case& one) const {
    if (masks_[one.grammar] == nullptr) return;
    one.request.options.constraint = std::make_shared<TokenConstraint>(masks_[one.grammar]);
  }

  void Check(const Case& one, const Result<Answer>& answer) {
    ASSERT_TRUE(answer.ok()) << answer.status().ToString();
    drafts_ += answer->usage.speculation;
    draft_reads_used_ += answer->usage.experts.draft_reads_used;
    if (answer->finish == FinishReason::kCancelled) {
      ASSERT_TRUE(one.cancelled);
      const std::size_t said = answer->tokens.size();
      ASSERT_LE(said, one.plain.size());
      ASSERT_TRUE(std::ranges::equal(answer->tokens, std::span(one.plain).first(said)));
      return;
    }
    ASSERT_EQ(answer->tokens, one.plain);
    ASSERT_EQ(answer->text, one.text);
  }

  // Some requests on one engine, at once.
  void Play(Engine& engine, std::vector<Case>& cases, const DraftChoice& drafters, Rng& rng) {
    EngineRunner runner(engine);
    const JumpyClock clock(rng.Next());
    BatchLoop loop(runner, engine.tokenizer(), clock, {.target_seconds = 1e-4, .least_chunk = 2},
                   drafters);
    std::map<RequestId, const Case*> of;
    std::vector<std::shared_ptr<Ticket>> tickets;
    std::size_t ended = 0;
    while (ended < cases.size()) {
      if (tickets.size() < cases.size() && (loop.size() == 0 || rng.Below(2) == 0)) {
        Case& next = cases[tickets.size()];
        ASSERT_TRUE(loop.Check(next.request).ok());
        tickets.push_back(std::make_shared<Ticket>(runner.NewRequest()));
        of[tickets.back()->id()] = &next;
        loop.Add(tickets.back(), next.request, clock.Now());
      }
      for (std::size_t i = 0; i < tickets.size(); ++i) {
        if (cases[i].cancelled && rng.Below(10) == 0) tickets[i]->Cancel();
      }
      for (const EndedRequest& end : loop.Step()) {
        Check(*of.at(end.ticket->id()), end.answer);
        ++ended;
        if (testing::Test::HasFatalFailure()) return;
      }
    }
  }

  std::string model_;
  std::unique_ptr<Engine> plain_;
  std::vector<std::shared_ptr<TokenMasks>> masks_;
  SpeculationUse drafts_;
  std::uint64_t draft_reads_used_ = 0;
};

}  // namespace troupe
