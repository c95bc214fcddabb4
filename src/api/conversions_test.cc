#include "api/conversions.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <limits>

#include "text/chat_template.h"
#include "text/tiny_vocab_for_test.h"

namespace troupe {
namespace {

using testing::Contains;
using testing::ElementsAre;
using testing::HasSubstr;

const Result<ChatPrompts> kNoFormat = Error(Code::kUnimplemented, "no chat format");

class Conversions : public testing::Test {
 protected:
  Result<BatchRequest> Convert(Request request, const Result<ChatPrompts>& format = kNoFormat) {
    return ToBatchRequest(std::move(request), *tokenizer_, format, /*now=*/1000);
  }
  std::unique_ptr<Tokenizer> tokenizer_ = MakeTokenizer(TinyByteLevelVocab()).value();
};

TEST_F(Conversions, APromptIsTextOrTokensOrAChat) {
  EXPECT_EQ(Convert({.prompt = "hello"})->prompt, tokenizer_->Encode("hello").value());
  EXPECT_THAT(Convert({.prompt = std::vector<TokenId>{7, 8}})->prompt, ElementsAre(7, 8));
  const Request chat{.prompt = std::vector<Message>{{.role = "user", .content = "hello"}}};
  const BatchRequest rendered = Convert(chat, ChatPrompts::In(ChatFormat::kTulu)).value();
  EXPECT_THAT(tokenizer_->Decode(rendered.prompt).value(), HasSubstr("<|user|>\nhello"));
  EXPECT_THAT(rendered.options.stop, testing::SizeIs(ChatStopStrings(ChatFormat::kTulu).size()));
}

TEST_F(Conversions, AGapIsForModelsThatFillIt) {
  const Request gap{.prompt = Gap{.before = "ab", .after = "hello"}};
  EXPECT_EQ(Convert(gap).status().code(), Code::kUnimplemented);
  Vocab vocab = TinyByteLevelVocab();
  vocab.fill_before = 1;
  vocab.fill_after = 2;
  vocab.fill_middle = 3;
  tokenizer_ = MakeTokenizer(std::move(vocab)).value();
  std::vector<TokenId> expected = {1};
  for (const auto& [text, mark] : {std::pair{"ab", 2}, {"hello", 3}}) {
    const std::vector<TokenId> ids = tokenizer_->Encode(text, {.add_special = false}).value();
    expected.insert(expected.end(), ids.begin(), ids.end());
    expected.push_back(mark);
  }
  EXPECT_EQ(Convert(gap)->prompt, expected);
}

TEST_F(Conversions, RefuseAChatWithoutMessagesWithAnUnknownRoleOrAnUnknownFormat) {
  const Request empty{.prompt = std::vector<Message>{}};
  EXPECT_EQ(Convert(empty, ChatPrompts::In(ChatFormat::kTulu)).status().code(),
            Code::kInvalidArgument);
  const Request stranger{.prompt = std::vector<Message>{{.role = "cat", .content = "meow"}}};
  EXPECT_EQ(Convert(stranger, ChatPrompts::In(ChatFormat::kTulu)).status().code(),
            Code::kInvalidArgument);
  EXPECT_EQ(Convert(stranger).status().code(), Code::kUnimplemented);
}

TEST_F(Conversions, RefuseTextThatIsNotUtf8AnEmptyStopStringAndNoTime) {
  EXPECT_EQ(Convert({.prompt = "\xFF"}).status().code(), Code::kInvalidArgument);
  EXPECT_EQ(Convert({.prompt = "a", .stop = {"x", ""}}).status().code(), Code::kInvalidArgument);
  EXPECT_EQ(Convert({.prompt = "a", .timeout = std::chrono::seconds(0)}).status().code(),
            Code::kInvalidArgument);
}

TEST_F(Conversions, EveryPageOfTheKvCacheIsFreeHeldOrKept) {
  BatchCounters counters;
  EXPECT_EQ(ToMetrics(counters).kv_pages.all, 0u);
  counters.prefix_cache = {.kept = 512, .idle = 256, .free = 768, .page = 256, .most = 2048};
  const KvPages pages = ToMetrics(counters).kv_pages;
  EXPECT_EQ(pages.all, 8u);
  EXPECT_EQ(pages.free, 3u);
  EXPECT_EQ(pages.cached, 1u);
  EXPECT_EQ(pages.held, 4u);
  EXPECT_EQ(pages.tokens_each, 256u);
}

TEST_F(Conversions, MetricsTellTheCardOfTheLastPass) {
  BatchCounters counters;
  EXPECT_EQ(ToMetrics(counters).card.name, "");
  counters.card = {.name = "a card", .slots = 9, .held = 7, .memory = 3_MiB};
  const CardState card = ToMetrics(counters).card;
  EXPECT_EQ(card.name, "a card");
  EXPECT_EQ(card.slots, 9u);
  EXPECT_EQ(card.held, 7u);
  EXPECT_EQ(card.memory, 3_MiB);
}

TEST_F(Conversions, ATimeoutIsADeadlineAndNeverWraps) {
  EXPECT_FALSE(Convert({.prompt = "a"})->deadline.has_value());
  EXPECT_EQ(Convert({.prompt = "a", .timeout = std::chrono::nanoseconds(5)})->deadline, 1005);
  EXPECT_GT(*Convert({.prompt = "a", .timeout = std::chrono::nanoseconds::max()})->deadline, 1000);
}

TEST_F(Conversions, SayWhichOptionIsWrong) {
  EXPECT_THAT(ToEngineOptions({.sequences = 0}).status().message(), HasSubstr("0 sequences"));
  EXPECT_THAT(ToEngineOptions({.queue = 1'000'000'000}).status().message(), HasSubstr("queue"));
  EXPECT_THAT(ToEngineOptions({.pass_seconds = 0}).status().message(), HasSubstr("passes of 0"));
  const double nan = std::numeric_limits<double>::quiet_NaN();
  EXPECT_FALSE(ToEngineOptions({.pass_seconds = nan}).ok());
  EXPECT_FALSE(ToEngineOptions({.lossiness = LossLimit{-0.1}}).ok());
  EXPECT_FALSE(ToEngineOptions({.lossiness = LossLimit{nan}}).ok());
  EXPECT_FALSE(ToEngineOptions({.lossiness = LatencyTarget{0}}).ok());
}

TEST_F(Conversions, GiveTheEngineEveryOption) {
  const EngineOptions options =
      ToEngineOptions({.memory = 3_GiB,
                       .context = 77,
                       .threads = 3,
                       .lossiness = Chain{"smoe:alpha=0.5"},
                       .storage = {.container = "c", .profile = "p", .quality_curve = "q"}})
          .value();
  EXPECT_EQ(options.memory, 3_GiB);
  EXPECT_EQ(options.context, 77u);
  EXPECT_EQ(options.threads, 3u);
  EXPECT_EQ(options.offload.lossiness, Lossiness(Chain{"smoe:alpha=0.5"}));
  EXPECT_EQ(options.offload.container, "c");
  EXPECT_EQ(options.offload.profile, "p");
  EXPECT_EQ(options.offload.quality_curve, "q");
  EXPECT_EQ(ToEngineOptions({.lossiness = LossLimit{0.025}})->offload.lossiness,
            Lossiness(LossLimit{0.025}));
  EXPECT_EQ(ToEngineOptions({.lossiness = LatencyTarget{0.1}})->offload.lossiness,
            Lossiness(LatencyTarget{0.1}));
}

TEST_F(Conversions, PassesAreAsLargeAsThePlanSaysAndAsLongAsTheOptionsSay) {
  const BatcherOptions batcher = ToBatcherOptions({.queue = 5, .pass_seconds = 0.75}, 700);
  EXPECT_EQ(batcher.limits.most_rows, 700u);
  EXPECT_EQ(batcher.limits.target_seconds, 0.75);
  EXPECT_EQ(batcher.queue, 5u);
}

TEST_F(Conversions, APlanIsPrintedALineEach) {
  const Plan plan{.context = 64,
                  .sequences = 2,
                  .kv_positions = 128,
                  .experts_in_memory = 3,
                  .experts_in_all = 9,
                  .lossiness = "exact",
                  .notes = {"look"}};
  EXPECT_THAT(Describe(plan), Contains("sequences     2 of 64 tokens"));
  EXPECT_THAT(Describe(plan), Contains("experts       0 B: 3 of 9 in memory"));
  EXPECT_THAT(Describe(plan), Contains("note          look"));
}

TEST_F(Conversions, APlanSaysWhereSequencesShareFewerContextsThanTheyAre) {
  EnginePlan engine;
  engine.memory.context = 4096;
  engine.memory.kv_positions = 10'000;
  engine.memory.sequences = 64;
  const Plan plan = ToPlan(engine, "exact");
  EXPECT_EQ(plan.kv_positions, 10'000u);
  EXPECT_THAT(Describe(plan), Contains("sequences     64 of up to 4096 tokens, 10000 in all"));
}

TEST_F(Conversions, AChatMayHaveToolsAndShowTheMarksOfItsAnswers) {
  Vocab vocab = TinyByteLevelVocab();
  vocab.chat_template = "{{ tools }}<|im_start|><tool_call>";
  vocab.tokens[7] = "<tool_call>";
  vocab.types[7] = TokenType::kControl;
  const Result<ChatPrompts> chat = ChatPrompts::Of(vocab);
  Request request{.prompt =
                      Conversation{.messages = {{"user", "a"}}, .tools = R"([{"name": "f"}])"}};
  const BatchRequest hidden = Convert(request, chat).value();
  EXPECT_THAT(tokenizer_->Decode(hidden.prompt).value(), HasSubstr("'name': 'f'"));
  EXPECT_TRUE(hidden.options.shown.empty());
  EXPECT_THAT(hidden.options.stop, Contains("<|im_end|>"));
  request.show_marks = true;
  EXPECT_THAT(Convert(request, chat)->options.shown, ElementsAre(7));
}

TEST_F(Conversions, TheEndOfReasoningIsWrittenWithItsSpecialTokens) {
  Vocab vocab = TinyByteLevelVocab();
  vocab.tokens[7] = "</think>";
  vocab.types[7] = TokenType::kControl;
  tokenizer_ = MakeTokenizer(vocab).value();
  Request request{.prompt = "a"};
  request.reasoning =
      Reasoning{.open = "<think>", .closes = {"</think>"}, .most_tokens = 5, .end = "</think>!"};
  const BatchRequest batch = Convert(request).value();
  EXPECT_THAT(batch.options.reasoning_end, ElementsAre(7, '!'));
  EXPECT_EQ(batch.options.reasoning, request.reasoning);
}

TEST_F(Conversions, ARequestIsAnsweredExactlyWhereTheModelMayLoseMoreThanIt) {
  const auto exactly = [](std::optional<double> most_loss, const Lossiness& opened) {
    Request request{.prompt = "a"};
    request.most_loss = most_loss;
    return AnswersExactly(request, opened);
  };
  EXPECT_FALSE(exactly({}, LossLimit{0.05}));
  EXPECT_FALSE(exactly(0.05, LossLimit{0.05}));
  EXPECT_TRUE(exactly(0.01, LossLimit{0.05}));
  EXPECT_TRUE(exactly(0.5, Chain{"drop"}));
  EXPECT_TRUE(AnswersExactly({.prompt = "a", .exact = true}, Chain{"drop"}));
  Request wrong{.prompt = "a"};
  wrong.most_loss = -0.1;
  EXPECT_EQ(Convert(wrong).status().code(), Code::kInvalidArgument);
}

TEST_F(Conversions, ReasoningWithoutMarksIsRefused) {
  const auto code = [&](Reasoning reasoning) {
    Request request{.prompt = "a"};
    request.reasoning = std::move(reasoning);
    return Convert(request).status().code();
  };
  EXPECT_EQ(code({.open = "<", .closes = {">"}}), Code::kOk);
  EXPECT_EQ(code({.open = "", .closes = {">"}}), Code::kInvalidArgument);
  EXPECT_EQ(code({.open = "<", .closes = {}}), Code::kInvalidArgument);
  EXPECT_EQ(code({.open = "<", .closes = {">", ""}}), Code::kInvalidArgument);
  EXPECT_EQ(code({.open = "<", .closes = {">"}, .most_tokens = 1}), Code::kInvalidArgument);
}

}  // namespace
}  // namespace troupe
