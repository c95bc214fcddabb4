#include "runtime/draft_engine.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <numeric>

#include "runtime/batch_loop.h"
#include "runtime/draft_plan.h"
#include "runtime/engine_runner.h"
#include "runtime/plain_answer_for_test.h"

namespace troupe {
namespace {

using testing::ElementsAreArray;
using testing::IsEmpty;

constexpr char kSelfDrafted[] = TROUPE_SOURCE_DIR "/models/tiny-qwen2moe-q8_0.gguf";

std::unique_ptr<Engine> OpenDrafted(std::uint32_t sequences, const std::string& draft) {
  EngineOptions options{.threads = 2, .context = 160, .sequences = sequences};
  options.drafters = draft.empty() ? DraftChoice() : *ParseDraftChoice("draft");
  options.draft = draft;
  return Engine::Open(kSelfDrafted, options).value();
}

std::vector<TokenId> TokensFrom(TokenId first, std::size_t count) {
  std::vector<TokenId> tokens(count);
  std::iota(tokens.begin(), tokens.end(), first);
  return tokens;
}

TEST(DraftEngineTest, HasASeatForEachOfSomeTexts) {
  const auto engine = OpenDrafted(2, "");
  DraftEngine drafts(*engine);
  const std::vector<TokenId> text = TokensFrom(10, 4);
  auto first = drafts.Begin(text);
  auto second = drafts.Begin(text);
  ASSERT_TRUE(first != nullptr && second != nullptr);
  EXPECT_EQ(drafts.Begin(text), nullptr);
  first.reset();
  EXPECT_NE(drafts.Begin(text), nullptr);
}

TEST(DraftGovernorOfModels, DrawnGuessesThatAreWrongSayNothingOfTheLikeliestTokens) {
  constexpr auto kHead = static_cast<std::size_t>(DraftSource::kHead);
  const DraftKind likeliest{kHead, ModelDrafter::kEvidenceOfLikeliest};
  const DraftKind drawn{kHead, ModelDrafter::kEvidenceOfDrawn};
  DraftGovernor governor;
  const double expected = governor.Expected(likeliest, 1);
  EXPECT_GT(expected, governor.Expected(drawn, 1));
  for (int i = 0; i < 50; ++i) governor.Learn({.kind = drawn, .drafted = 1, .right = 0});
  EXPECT_LT(governor.Expected(drawn, 1), 0.2);
  EXPECT_EQ(governor.Expected(likeliest, 1), expected);
}

TEST(DraftEngineTest, ATextGetsTheSeatThatKnowsMostOfIt) {
  const auto engine = OpenDrafted(3, "");
  DraftEngine drafts(*engine);
  const std::vector<TokenId> one = TokensFrom(10, 6), other = TokensFrom(50, 4);
  {
    auto first = drafts.Begin(one), second = drafts.Begin(other);
    ASSERT_TRUE(first->Feed(one).ok());
    ASSERT_TRUE(second->Feed(other).ok());
  }
  std::vector<TokenId> turn = other;
  turn.push_back(7);
  EXPECT_THAT(drafts.Begin(turn)->tokens(), ElementsAreArray(other));
  EXPECT_THAT(drafts.Begin(TokensFrom(10, 9))->tokens(), ElementsAreArray(one));
  EXPECT_THAT(drafts.Begin(TokensFrom(90, 3))->tokens(), IsEmpty());
}

// Passes of an engine take a time of their own, whatever the machine does.
class PassTime final : public RouteObserver {
 public:
  PassTime(Engine& engine, ManualClock& clock, Nanos takes)
      : engine_(engine), clock_(clock), takes_(takes) {
    engine_.transformer().set_route_observer(this);
  }
  ~PassTime() override { engine_.transformer().set_route_observer(nullptr); }

  void PassBegins(const PassFacts&) override {}
  void Routed(std::uint32_t, std::span<const ExpertChoice>, std::span<const float>) override {}
  void PassEnded() override { clock_.Advance(takes_); }

 private:
  Engine& engine_;
  ManualClock& clock_;
  Nanos takes_;
};

class SelfDrafting : public testing::Test {
 protected:
  // The answers to some requests at once, whose seeds count up.
  std::vector<Answer> Ask(Engine& engine, const GenerateOptions& options,
                          std::size_t requests = 1) {
    EngineRunner runner(engine);
    ManualClock clock;
    const PassTime large(engine, clock, 1'000'000), small(*engine.draft(), clock, 50'000);
    BatchLoop loop(runner, engine.tokenizer(), clock, {}, engine.plan().drafters);
    std::vector<Answer> answers(requests);
    std::vector<RequestId> ids;
    for (std::size_t i = 0; i < requests; ++i) {
      BatchRequest request{.prompt = Prompt(), .options = options};
      request.options.sampler.seed += i;
      ids.push_back(runner.NewRequest());
      loop.Add(std::make_shared<Ticket>(ids.back()), request, 0);
    }
    for (std::size_t ended = 0; ended < requests;) {
      for (EndedRequest& end : loop.Step()) {
        const auto at = std::ranges::find(ids, end.ticket->id()) - ids.begin();
        answers[static_cast<std::size_t>(at)] = std::move(end.answer).value();
        ++ended;
      }
    }
    counters_ = loop.counters();
    return answers;
  }
  std::vector<TokenId> Plain(GenerateOptions options, std::size_t request = 0) {
    options.sampler.seed += request;
    Session session = Session::Create(*plain_).value();
    return PlainAnswer(session, plain_->tokenizer(), Prompt(), options).tokens;
  }
  std::vector<TokenId> Prompt() const { return plain_->tokenizer().Encode("The kernel").value(); }
  static const DraftedTokens& ByModel(const SpeculationUse& use) {
    return use.by_source[static_cast<std::size_t>(DraftSource::kModel)];
  }

  const std::unique_ptr<Engine> plain_ = OpenDrafted(1, "");
  BatchCounters counters_;
};

// The drafter draws as the answer does, so what it guesses is what comes, at any temperature.
TEST_F(SelfDrafting, EverythingIsRight) {
  const auto engine = OpenDrafted(1, kSelfDrafted);
  for (const double temperature : {0.0, 0.7, 1.5}) {
    GenerateOptions options{.max_tokens = 100, .ignore_end = true};
    options.sampler = {.temperature = temperature, .repetition_penalty = 1.1, .seed = 5};
    const Answer answer = Ask(*engine, options).front();
    EXPECT_EQ(answer.tokens, Plain(options));
    const SpeculationUse& use = answer.usage.speculation;
    EXPECT_GT(use.drafted, 20u) << temperature;
    EXPECT_EQ(use.accepted, use.drafted) << temperature;
    EXPECT_EQ(ByModel(use), (DraftedTokens{.drafted = use.drafted, .accepted = use.accepted}));
    EXPECT_GT(use.drafting_seconds, 0);
    EXPECT_EQ(counters_.speculation, use);
  }
}

TEST_F(SelfDrafting, AnswersBeyondTheSeatsHaveNoDrafts) {
  constexpr std::size_t kRequests = 6;
  const auto engine = OpenDrafted(kRequests, kSelfDrafted);
  const GenerateOptions options{
      .max_tokens = 60, .sampler = {.temperature = 0.9}, .ignore_end = true};
  const std::vector<Answer> answers = Ask(*engine, options, kRequests);
  std::size_t drafted = 0;
  for (std::size_t i = 0; i < kRequests; ++i) {
    EXPECT_EQ(answers[i].tokens, Plain(options, i)) << i;
    const DraftedTokens& by = ByModel(answers[i].usage.speculation);
    EXPECT_EQ(by.accepted, by.drafted);
    drafted += answers[i].usage.speculation.drafting_seconds > 0;
  }
  EXPECT_GE(drafted, 1u);
  EXPECT_LE(drafted, kMostDraftSequences);
}

}  // namespace
}  // namespace troupe
