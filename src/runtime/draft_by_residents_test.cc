// Drafts by the experts in memory on a real engine with a part of its experts: they are checked,
// they read ahead, and nothing of them stays.
#include "runtime/draft_by_residents.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <functional>

#include "expert/prefetch/named_ahead.h"
#include "forge/synth.h"
#include "forge/synth_shape.h"
#include "runtime/batch_loop.h"
#include "runtime/engine_runner.h"
#include "runtime/plain_answer_for_test.h"
#include "runtime/plan_model.h"
#include "testing/temp_folder.h"

namespace troupe {
namespace {

using testing::ElementsAreArray;

constexpr char kResidentModel[] = TROUPE_SOURCE_DIR "/models/tiny-qwen2moe-q8_0.gguf";

std::unique_ptr<Engine> OpenForResidents(const EngineOptions& options) {
  return Engine::Open(kResidentModel, options).value();
}

EngineOptions ResidentSlots(std::optional<std::uint32_t> slots, std::uint32_t sequences = 1,
                            const char* drafters = "resident") {
  EngineOptions options{.threads = 2, .context = 320, .sequences = sequences};
  options.offload.slots = slots;
  options.drafters = *ParseDraftChoice(drafters);
  return options;
}

// The time of passes is what a test says: those of the text are slow, and drafts are quick.
class SlowText final : public RouteObserver {
 public:
  SlowText(Engine& engine, ManualClock& clock) : engine_(engine), clock_(clock) {
    engine_.transformer().set_route_observer(this);
  }
  ~SlowText() override { engine_.transformer().set_route_observer(nullptr); }
  void PassBegins(const PassFacts& pass) override {
    drafts_ = pass.drafts;
    ++(drafts_ ? draft_passes : text_passes);
    if (drafts_ && on_draft) on_draft();
  }
  void Routed(std::uint32_t, std::span<const ExpertChoice>, std::span<const float>) override {}
  void PassEnded() override { clock_.Advance(drafts_ ? 10'000 : 1'000'000); }

  int draft_passes = 0, text_passes = 0;
  std::function<void()> on_draft;

 private:
  Engine& engine_;
  ManualClock& clock_;
  bool drafts_ = false;
};

class ResidentDraftTest : public testing::Test {
 protected:
  std::vector<Answer> Ask(Engine& engine, const GenerateOptions& options, std::size_t requests = 1,
                          std::optional<std::size_t> cancelled_in_draft = std::nullopt) {
    EngineRunner runner(engine);
    ManualClock clock;
    SlowText passes(engine, clock);
    BatchLoop loop(runner, engine.tokenizer(), clock, {}, engine.plan().drafters);
    std::vector<std::shared_ptr<Ticket>> tickets;
    for (std::size_t i = 0; i < requests; ++i) {
      BatchRequest request{.prompt = Prompt(engine), .options = options};
      request.options.sampler.seed += i;
      tickets.push_back(std::make_shared<Ticket>(runner.NewRequest()));
      loop.Add(tickets.back(), request, 0);
    }
    if (cancelled_in_draft) {
      passes.on_draft = [&] {
        if (passes.draft_passes == 5) tickets[*cancelled_in_draft]->Cancel();
      };
    }
    std::vector<Answer> answers(requests);
    for (std::size_t ended = 0; ended < requests;) {
      for (EndedRequest& end : loop.Step()) {
        const auto at = std::ranges::find(tickets, end.ticket) - tickets.begin();
        answers[static_cast<std::size_t>(at)] = std::move(end.answer).value();
        ++ended;
      }
    }
    counters_ = loop.counters();
    draft_passes_ = passes.draft_passes;
    return answers;
  }
  std::vector<TokenId> Plain(Engine& engine, GenerateOptions options, std::size_t request = 0) {
    options.sampler.seed += request;
    Session session = Session::Create(engine).value();
    return PlainAnswer(session, engine.tokenizer(), Prompt(engine), options).tokens;
  }
  static std::vector<TokenId> Prompt(const Engine& engine) {
    return engine.tokenizer().Encode("The kernel is the driver of the").value();
  }
  static GenerateOptions Tokens(std::size_t tokens, double temperature = 0) {
    GenerateOptions options{.max_tokens = tokens, .ignore_end = true};
    options.sampler = {.temperature = temperature, .seed = 5};
    return options;
  }
  static const DraftedTokens& ByResidents(const SpeculationUse& use) {
    return use.by_source[static_cast<std::size_t>(DraftSource::kResident)];
  }

  BatchCounters counters_;
  int draft_passes_ = 0;
};

TEST_F(ResidentDraftTest, AnswersAreTheSameAndTheCountersFire) {
  const auto engine = OpenForResidents(ResidentSlots(170));
  for (const double temperature : {0.0, 0.8}) {
    const GenerateOptions options = Tokens(120, temperature);
    const Answer answer = Ask(*engine, options).front();
    EXPECT_EQ(answer.tokens, Plain(*engine, options)) << temperature;
    const SpeculationUse& use = answer.usage.speculation;
    EXPECT_GT(use.drafted, 10u) << temperature;
    EXPECT_GT(use.accepted, 0u) << temperature;
    EXPECT_EQ(ByResidents(use), (DraftedTokens{.drafted = use.drafted, .accepted = use.accepted}));
    EXPECT_EQ(counters_.speculation, use);
    EXPECT_GT(use.drafting_seconds, 0);
    EXPECT_NEAR(use.drafting_seconds, draft_passes_ * 1e-5, 1e-9);
    const ExpertUsage& experts = answer.usage.experts;
    EXPECT_GT(experts.draft_reads, 0u);
    EXPECT_GT(experts.draft_reads_used, 0u);
    EXPECT_LE(experts.draft_reads_used, experts.draft_reads);
    EXPECT_EQ(experts.NotExact(), 0u) << "what drafts leave out is in no answer";
  }
}

// Keys, values and logits behind a draft are those of a sequence that never had one, also where
// the draft went on to a page of its own.
TEST_F(ResidentDraftTest, ASequenceIsAsItWasBehindADraft) {
  const auto engine = OpenForResidents(ResidentSlots(120, 2));
  std::vector<TokenId> text;
  for (std::size_t i = 0; i < 254; ++i) text.push_back(static_cast<TokenId>(10 + i * 7 % 300));
  Session plain = Session::Create(*engine).value(), drafted = Session::Create(*engine).value();
  ASSERT_TRUE(plain.FeedPrompt(text).ok());
  ASSERT_TRUE(drafted.FeedPrompt(text).ok());
  ResidentDraft draft(drafted, 7);
  for (int round = 0; round < 3; ++round) {
    for (const TokenId token : {5, 9, 11, 6}) ASSERT_TRUE(draft.Feed({&token, 1}).ok());
    EXPECT_EQ(drafted.tokens().size(), plain.tokens().size() + 4);
    draft.Rest();
    ASSERT_THAT(drafted.tokens(), ElementsAreArray(plain.tokens()));
    const std::vector<TokenId> next = {5, 12, 40};
    ASSERT_TRUE(plain.Feed(next).ok());
    ASSERT_TRUE(drafted.Feed(next).ok());
    ASSERT_TRUE(std::ranges::equal(plain.logits(), drafted.logits())) << round;
  }
}

TEST_F(ResidentDraftTest, AStateThatCannotGoBackGetsNoDraftAndChangesNothing) {
  const TempFolder folder;
  const std::string path = folder.PathOf("state.gguf");
  ASSERT_TRUE(Synthesize(*FindShape("tiny-qwen3next"), {}, path).ok());
  EngineOptions options = ResidentSlots(std::nullopt);
  const auto whole = Engine::Open(path, options).value();
  options.offload.slots = whole->plan().needs.AllExperts() / 2;
  const auto engine = Engine::Open(path, options).value();
  ASSERT_FALSE(engine->plan().memory.all_resident);
  EXPECT_FALSE(engine->DraftsByResidents());
  EXPECT_THAT(engine->plan().notes, testing::Contains(testing::HasSubstr("have a state")));
  EngineRunner runner(*engine);
  EXPECT_EQ(runner.Reserve({.prompt = std::vector<TokenId>{1, 2}, .tokens = 9})->cached, 0u);
  EXPECT_EQ(runner.DraftByResidents(0, 1), nullptr);
  runner.Release(0);
  const GenerateOptions generate = Tokens(20, 0.8);
  Session session = Session::Create(*whole).value();
  const std::vector<TokenId> prompt = {3, 4, 5};
  const std::vector<TokenId> plain =
      PlainAnswer(session, whole->tokenizer(), prompt, generate).tokens;
  Session drafted = Session::Create(*engine).value();
  EXPECT_EQ(PlainAnswer(drafted, engine->tokenizer(), prompt, generate).tokens, plain);
}

TEST_F(ResidentDraftTest, NothingIsDraftedWhereEveryExpertIsInMemory) {
  const auto engine = OpenForResidents(ResidentSlots(std::nullopt));
  EXPECT_FALSE(engine->plan().drafters.resident);
  EXPECT_THAT(engine->plan().notes, testing::Contains(testing::HasSubstr("all of them are there")));
  const Answer answer = Ask(*engine, Tokens(20)).front();
  EXPECT_EQ(answer.usage.speculation, SpeculationUse());
  EXPECT_EQ(draft_passes_, 0);
}

TEST_F(ResidentDraftTest, OfTheBudgetItTakesLessThanASlot) {
  const EnginePlan without = PlanModel(kResidentModel, ResidentSlots(170, 1, "off"))->plan;
  const EnginePlan with = PlanModel(kResidentModel, ResidentSlots(170))->plan;
  EXPECT_EQ(with.memory.slots, without.memory.slots);
  const Bytes names = with.needs.prediction - without.needs.prediction;
  EXPECT_EQ(names, NamedAhead::BytesFor({.layers = 8, .experts = 32}));
  EXPECT_LT(names, with.needs.slot);
}

// An eviction policy and a predictor are told the same, in the same order, with drafts and without.
TEST_F(ResidentDraftTest, CachesAndPredictorsLearnWhatTheTextTeaches) {
  class Listener final : public EvictionPolicy, public Predictor {
   public:
    explicit Listener(std::vector<std::pair<ExpertId, std::uint32_t>>& heard) : heard_(heard) {}
    std::string_view name() const override { return "listener"; }
    void OnAsked(ExpertId id, std::span<const Asker> askers) override {
      heard_.emplace_back(id, TokensOf(askers));
    }
    std::size_t Choose(std::span<const ExpertId>) override { return 0; }
    void OnChosen(const LayerChoices& choices) override {
      for (const SequenceDemands& of : choices.by_sequence()) {
        for (const ExpertDemand& demand : of.demands) {
          heard_.emplace_back(ExpertId{choices.layer(), demand.expert}, demand.tokens);
        }
      }
    }
    std::vector<Guess> Predict(std::uint32_t, std::uint32_t, const GateScores&) override {
      return {};
    }

   private:
    std::vector<std::pair<ExpertId, std::uint32_t>>& heard_;
  };
  using Heard = std::vector<std::pair<ExpertId, std::uint32_t>>;
  const auto heard_by = [&](const char* drafters, Heard& policy, Heard& predictor) {
    EngineOptions options = ResidentSlots(170, 1, drafters);
    options.offload.in_order = true;
    options.offload.make_policy = [&](ExpertGrid) { return std::make_unique<Listener>(policy); };
    options.offload.make_predictor = [&](ExpertGrid) {
      return std::make_unique<Listener>(predictor);
    };
    const auto engine = OpenForResidents(options);
    return Ask(*engine, Tokens(100)).front();
  };
  Heard policy, predictor, drafted_policy, drafted_predictor;
  const Answer plain = heard_by("off", policy, predictor);
  const Answer drafted = heard_by("resident", drafted_policy, drafted_predictor);
  EXPECT_EQ(drafted.tokens, plain.tokens);
  EXPECT_GT(drafted.usage.speculation.accepted, 0u);
  EXPECT_GT(drafted.usage.speculation.drafted, drafted.usage.speculation.accepted);
  EXPECT_EQ(drafted_policy, policy);
  EXPECT_EQ(drafted_predictor, predictor);
}

TEST_F(ResidentDraftTest, SeveralAnswersDraftAtOnce) {
  constexpr std::size_t kTogether = 3;
  // With fewer slots guesses are wrong too often for the governor, as loads come when they come.
  const auto engine = OpenForResidents(ResidentSlots(230, kTogether + 1));
  const GenerateOptions options = Tokens(80, 0.3);
  const std::vector<Answer> answers = Ask(*engine, options, kTogether);
  std::size_t drafting = 0;
  for (std::size_t i = 0; i < kTogether; ++i) {
    EXPECT_EQ(answers[i].tokens, Plain(*engine, options, i)) << i;
    drafting += ByResidents(answers[i].usage.speculation).drafted > 0;
  }
  EXPECT_GT(drafting, 1u);
}

TEST_F(ResidentDraftTest, AnAnswerCancelledInMidDraftLeavesNothing) {
  const auto engine = OpenForResidents(ResidentSlots(170, 3));
  const GenerateOptions options = Tokens(80);
  const std::vector<Answer> answers = Ask(*engine, options, 2, /*cancelled_in_draft=*/0);
  EXPECT_EQ(answers[0].finish, FinishReason::kCancelled);
  const std::vector<TokenId> plain = Plain(*engine, options);
  ASSERT_LT(answers[0].tokens.size(), plain.size());
  EXPECT_TRUE(
      std::ranges::equal(answers[0].tokens, std::span(plain).first(answers[0].tokens.size())));
  EXPECT_EQ(answers[1].tokens, Plain(*engine, options, 1));
  EXPECT_EQ(Ask(*engine, options).front().tokens, plain) << "the engine goes on";
}

}  // namespace
}  // namespace troupe
