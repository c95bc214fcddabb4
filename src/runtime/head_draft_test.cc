// Drafts by a model's own head, on real engines: they follow the text, they are checked, and the
// answers are those without them.
#include "runtime/head_draft.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <fstream>

#include "io/text_file.h"
#include "runtime/agreeing_head_for_test.h"
#include "runtime/batch_loop.h"
#include "runtime/draft_plan.h"
#include "runtime/engine_runner.h"
#include "runtime/plain_answer_for_test.h"
#include "runtime/plan_model.h"
#include "store/model_checksums.h"
#include "testing/temp_folder.h"

namespace troupe {
namespace {

using testing::Contains;
using testing::HasSubstr;

constexpr char kHeadVocabulary[] = TROUPE_SOURCE_DIR "/models/tiny-qwen2moe-q8_0.gguf";

// Passes of the text take a millisecond, and the head no time.
class TimedText final : public RouteObserver {
 public:
  TimedText(Engine& engine, ManualClock& clock) : engine_(engine), clock_(clock) {
    engine_.transformer().set_route_observer(this);
  }
  ~TimedText() override { engine_.transformer().set_route_observer(nullptr); }
  void PassBegins(const PassFacts&) override {}
  void Routed(std::uint32_t, std::span<const ExpertChoice>, std::span<const float>) override {}
  void PassEnded() override { clock_.Advance(1'000'000); }

 private:
  Engine& engine_;
  ManualClock& clock_;
};

class HeadDrafts : public testing::Test {
 protected:
  static EngineOptions Options(const char* drafters = "heads") {
    return {.threads = 2,
            .context = 512,
            .sequences = 2,
            .memory = 1_GiB,
            .chunk = 96,
            .drafters = *ParseDraftChoice(drafters)};
  }
  static GenerateOptions Tokens(std::size_t tokens, double temperature = 0) {
    GenerateOptions options{.max_tokens = tokens, .ignore_end = true};
    options.sampler = {.temperature = temperature, .seed = 5};
    return options;
  }
  static std::vector<TokenId> Prompt(std::size_t tokens = 9) {
    std::vector<TokenId> prompt;
    for (std::size_t i = 0; i < tokens; ++i) prompt.push_back(static_cast<TokenId>(300 + 7 * i));
    return prompt;
  }
  static Answer Plain(Engine& engine, const std::vector<TokenId>& prompt,
                      const GenerateOptions& options) {
    Session session = Session::Create(engine).value();
    return PlainAnswer(session, engine.tokenizer(), prompt, options);
  }
  std::vector<Answer> Ask(Engine& engine, const std::vector<BatchRequest>& requests) {
    EngineRunner runner(engine);
    ManualClock clock;
    const TimedText passes(engine, clock);
    BatchLoop loop(runner, engine.tokenizer(), clock, {}, engine.plan().drafters);
    std::vector<std::shared_ptr<Ticket>> tickets;
    for (const BatchRequest& request : requests) {
      tickets.push_back(std::make_shared<Ticket>(runner.NewRequest()));
      loop.Add(tickets.back(), request, 0);
    }
    std::vector<Answer> answers(requests.size());
    for (std::size_t ended = 0; ended < requests.size();) {
      for (EndedRequest& end : loop.Step()) {
        const auto at = std::ranges::find(tickets, end.ticket) - tickets.begin();
        answers[static_cast<std::size_t>(at)] = std::move(end.answer).value();
        ++ended;
      }
    }
    passes_ = loop.counters().passes;
    return answers;
  }
  static DraftedTokens ByHead(const Answer& answer) {
    return answer.usage.speculation.by_source[static_cast<std::size_t>(DraftSource::kHead)];
  }

  const TempFolder folder_;
  std::uint64_t passes_ = 0;
};

class HeadDraftTest : public HeadDrafts, public testing::WithParamInterface<const char*> {
 protected:
  std::string Model(float strength) const {
    const std::string path = folder_.PathOf(fmt::format("{}.gguf", strength));
    WriteAgreeingModel(path, GetParam(), strength, kHeadVocabulary);
    return path;
  }
  std::unique_ptr<Engine> Open(float strength) const {
    return Engine::Open(Model(strength), Options()).value();
  }
};

TEST_P(HeadDraftTest, AHeadThatKnowsTheModelIsRightInEveryGuess) {
  const auto engine = Open(0);
  const GenerateOptions options = Tokens(80);
  const Answer answer = Ask(*engine, {{.prompt = Prompt(), .options = options}}).front();
  EXPECT_EQ(answer.tokens, Plain(*engine, Prompt(), options).tokens);
  EXPECT_GT(ByHead(answer).accepted, 30u);
  EXPECT_EQ(ByHead(answer).accepted, ByHead(answer).drafted);
  EXPECT_LT(passes_, 50u) << "for 80 tokens";
}

TEST_P(HeadDraftTest, AnswersAreThoseWithoutItWhetherItIsRightOrWrong) {
  const auto engine = Open(0.1f);
  std::uint64_t right = 0, wrong = 0;
  for (const double temperature : {0.0, 0.7}) {
    const GenerateOptions options = Tokens(90, temperature);
    const std::vector<TokenId> other = Prompt(130);  // in two chunks
    const std::vector<Answer> answers = Ask(
        *engine, {{.prompt = Prompt(), .options = options}, {.prompt = other, .options = options}});
    EXPECT_EQ(answers[0].tokens, Plain(*engine, Prompt(), options).tokens);
    EXPECT_EQ(answers[1].tokens, Plain(*engine, other, options).tokens);
    for (const Answer& answer : answers) {
      right += ByHead(answer).accepted;
      wrong += ByHead(answer).drafted - ByHead(answer).accepted;
    }
  }
  EXPECT_GT(right, 20u);
  EXPECT_GT(wrong, 5u);
}

// What it says of a text does not depend on the guesses that it has made before.
TEST_P(HeadDraftTest, BehindGuessesItReadsWhatTheTextHas) {
  const auto engine = Open(1);
  Session drafted = Session::Create(*engine).value(), plain = Session::Create(*engine).value();
  const auto of_drafted = engine->DraftByHead(drafted), of_plain = engine->DraftByHead(plain);
  std::vector<TokenId> text = Prompt(20);
  ASSERT_TRUE(drafted.FeedPrompt(text).ok());
  ASSERT_TRUE(plain.FeedPrompt(text).ok());
  for (int round = 0; round < 3; ++round) {
    text.push_back(static_cast<TokenId>(40 + round));  // drawn, and in no sequence yet
    const auto feed = [&](DraftSequence& draft) {
      return draft.Feed(std::span(text).subspan(draft.tokens().size())).value();
    };
    const std::span<const float> said = feed(*of_drafted);
    const std::vector<float> first(said.begin(), said.end());
    for (const TokenId guess : {7, 8}) ASSERT_TRUE(of_drafted->Feed({&guess, 1}).ok());
    of_drafted->Rest();
    EXPECT_EQ(of_drafted->tokens().size(), text.size());
    const std::span<const float> expected = feed(*of_plain);
    EXPECT_TRUE(std::ranges::equal(first, expected)) << round;
    ASSERT_TRUE(drafted.Feed({&text.back(), 1}).ok());
    ASSERT_TRUE(plain.Feed({&text.back(), 1}).ok());
  }
}

TEST_P(HeadDraftTest, OfALongPromptItReadsTheLastRows) {
  const auto engine = Open(0);
  Session session = Session::Create(*engine).value();
  const auto draft = engine->DraftByHead(session);
  const std::vector<TokenId> prompt = Prompt(400);
  ASSERT_TRUE(session.FeedPrompt(prompt).ok());
  EXPECT_EQ(draft->most_rows(), 400 - StreamTail::kRows + 1 + NextTokenHead::kMostRows);
  const GenerateOptions options = Tokens(60);
  const Answer answer = Ask(*engine, {{.prompt = prompt, .options = options}}).front();
  EXPECT_EQ(answer.tokens, Plain(*engine, prompt, options).tokens);
  EXPECT_GT(ByHead(answer).accepted, 10u);
}

TEST_P(HeadDraftTest, ItsMemoryIsInThePlan) {
  const std::string path = Model(0);
  const PlannedModel without = PlanModel(path, Options("lookup")).value();
  const PlannedModel with = PlanModel(path, Options()).value();
  EXPECT_EQ(without.plan.memory.draft, Bytes());
  EXPECT_EQ(with.plan.memory.draft,
            *HeadBytes(with.file, *with.config, Options(), with.plan.threads).value());
  EXPECT_GT(with.plan.memory.draft, 2_MiB);
  EXPECT_THAT(with.plan.notes, Contains(HasSubstr("the model's own head guesses")));
}

// Where experts do not all fit, their memory is worth more.
TEST_P(HeadDraftTest, WhereExpertsDoNotAllFitItIsAskedForByName) {
  const std::string path = Model(0);
  EXPECT_TRUE(PlanModel(path, Options("auto"))->plan.drafters.heads);
  EngineOptions few = Options("auto");
  few.offload.slots = 10;
  EXPECT_FALSE(PlanModel(path, few)->plan.drafters.heads);
  EXPECT_EQ(PlanModel(path, few)->plan.memory.draft, Bytes());
  few.drafters = *ParseDraftChoice("heads");
  EXPECT_TRUE(PlanModel(path, few)->plan.drafters.heads);
  const auto engine = Engine::Open(path, few).value();
  const GenerateOptions options = Tokens(60);
  const Answer answer = Ask(*engine, {{.prompt = Prompt(), .options = options}}).front();
  EXPECT_EQ(answer.tokens, Plain(*engine, Prompt(), options).tokens);
  EXPECT_GT(ByHead(answer).accepted, 10u);
}

// One bit of it is another one than when the model was packed.
TEST_P(HeadDraftTest, ADamagedHeadIsLeftOutOrNamedWhereItWasAskedFor) {
  const std::string path = Model(0);
  {
    const GgufModel model = GgufModel::Open(path).value();
    ASSERT_TRUE(
        WriteWholeText(ChecksumsPathBeside(path), ChecksumsText(SumModel(model, 2).value())).ok());
    const auto head = std::ranges::find_if(model.tensors(), [](const TensorInfo& tensor) {
      return tensor.name.ends_with("nextn.eh_proj.weight");
    });
    std::fstream file(path, std::ios::in | std::ios::out | std::ios::binary);
    file.seekg(static_cast<std::streamoff>(head->offset + 40));
    const char byte = static_cast<char>(file.get() ^ 4);
    file.seekp(static_cast<std::streamoff>(head->offset + 40));
    file.put(byte);
  }
  const Status refused = Engine::Open(path, Options("heads")).status();
  EXPECT_EQ(refused.code(), Code::kDataLoss);
  EXPECT_THAT(std::string(refused.message()), HasSubstr("nextn.eh_proj.weight"));
  const auto engine = Engine::Open(path, Options("auto")).value();
  EXPECT_FALSE(engine->plan().drafters.heads);
  const GenerateOptions options = Tokens(60);
  const Answer answer = Ask(*engine, {{.prompt = Prompt(), .options = options}}).front();
  EXPECT_EQ(answer.tokens, Plain(*engine, Prompt(), options).tokens);
  EXPECT_EQ(ByHead(answer).drafted, 0u);
}

INSTANTIATE_TEST_SUITE_P(Families, HeadDraftTest,
                         testing::Values("tiny-glm4moe", "tiny-qwen35moe", "tiny-qwen2moe-some",
                                         "tiny-qwen2moe-head"),
                         [](const auto& shape) {
                           std::string name = shape.param;
                           std::erase(name, '-');
                           return name;
                         });

// A half of the vocabulary: it is right where the answer stays within it, and elsewhere wrong.
TEST_F(HeadDrafts, OfSomeTokensAloneGuessNoOtherAndChangeNoAnswer) {
  const std::string path = folder_.PathOf("some.gguf");
  WriteAgreeingModel(path, "tiny-qwen2moe-head", 0.1f, kHeadVocabulary, 2048);
  const auto engine = Engine::Open(path, Options()).value();
  const std::vector<std::int64_t> listed =
      GgufModel::Open(path)->metadata().GetInts("qwen2moe.nextn_tokens").value();
  Session session = Session::Create(*engine).value();
  const auto draft = engine->DraftByHead(session);
  const std::vector<TokenId> prompt = Prompt(20);
  ASSERT_TRUE(session.FeedPrompt(prompt).ok());
  const std::span<const float> logits = draft->Feed(prompt).value();
  for (std::size_t token = 0; token < logits.size(); ++token) {
    const bool said = std::ranges::binary_search(listed, static_cast<std::int64_t>(token));
    EXPECT_EQ(std::isfinite(logits[token]), said) << token;
  }
  std::uint64_t right = 0, wrong = 0;
  for (const double temperature : {0.0, 0.7}) {
    const GenerateOptions options = Tokens(90, temperature);
    const Answer answer = Ask(*engine, {{.prompt = Prompt(), .options = options}}).front();
    EXPECT_EQ(answer.tokens, Plain(*engine, Prompt(), options).tokens);
    right += ByHead(answer).accepted;
    wrong += ByHead(answer).drafted - ByHead(answer).accepted;
  }
  EXPECT_GT(right, 5u);
  EXPECT_GT(wrong, 5u);
}

TEST_F(HeadDrafts, OfAModelWithoutAHeadAreRefusedOrLeftOut) {
  EngineOptions options{.context = 128, .memory = 1_GiB, .drafters = *ParseDraftChoice("heads")};
  const Status refused = PlanModel(kHeadVocabulary, options).status();
  EXPECT_EQ(refused.code(), Code::kInvalidArgument);
  EXPECT_THAT(std::string(refused.message()), HasSubstr("this file has none"));
  options.drafters = *ParseDraftChoice("auto");
  EXPECT_FALSE(PlanModel(kHeadVocabulary, options)->plan.drafters.heads);
}

}  // namespace
}  // namespace troupe
