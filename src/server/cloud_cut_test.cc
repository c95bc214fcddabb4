// Prompts that an end has cut for answers of one token (cloud_cut_for_test.h).
#include "server/cloud_cut.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <chrono>
#include <future>
#include <limits>
#include <thread>

#include "server/cloud_cut_for_test.h"
#include "split/wire/cloud_line.h"

namespace troupe {
namespace {

using testing::HasSubstr;

TEST_F(CloudCutTest, RowsInAnyOrderAndTwiceGiveTheTokenOfTheModelAlone) {
  for (std::uint64_t seed = 0; seed < 8; ++seed) {
    const Request request = Asked(seed);
    const std::vector<float> rows = lower_.RowsOf(PromptOf(request));
    const std::size_t tokens = PromptOf(request).size();
    const auto reply = Start("POST", "/split/answers", Encode(Cut(request)));
    reply->WaitFor("ready");
    const std::size_t half = tokens / 2;
    std::vector<std::shared_ptr<FakeReply>> sent;
    sent.push_back(Send(lower_.Message(rows, half, tokens - half)));
    sent.push_back(Send(lower_.Message(rows, half, tokens - half)));
    sent.push_back(Send(lower_.Message(rows, 0, half)));
    reply->WaitForEnd();
    for (const auto& receipt : sent) receipt->WaitForEnd();
    EXPECT_EQ(DecodeStatesReceipt(sent[0]->body())->rows, tokens - half);
    EXPECT_EQ(DecodeStatesReceipt(sent[2]->body())->rows, half);
    const Answer alone = Alone(request);
    EXPECT_THAT(reply->body(), HasSubstr(EncodeTokens(alone.tokens)));
    EXPECT_THAT(reply->body(), HasSubstr(R"({"end":"length")"));
  }
  const PartCounters counters = served_.cuts->counters();
  EXPECT_EQ(counters.prompts, 8u);
  EXPECT_EQ(counters.prompts_now, 0u);
  EXPECT_GT(counters.pass_seconds, 0);
  EXPECT_EQ(LeftWaiting(*served_.cuts), Bytes());
}

TEST_F(CloudCutTest, TheLastRowsMayOvertakeHoweverManyMessagesAreThrough) {
  const Request request = Asked();
  const std::vector<float> rows = lower_.RowsOf(PromptOf(request));
  const std::size_t tokens = PromptOf(request).size();
  ASSERT_GE(tokens, 12u);
  const std::size_t last = tokens - 2;
  const auto reply = Start("POST", "/split/answers", Encode(Cut(request)));
  reply->WaitFor("ready");
  std::vector<std::shared_ptr<FakeReply>> sent;
  for (std::size_t at = 0; at < last; ++at) {
    sent.push_back(Send(lower_.Message(rows, at, 1)));
    sent.back()->WaitForEnd();
  }
  sent.push_back(Send(lower_.Message(rows, last + 1, 1)));
  sent.push_back(Send(lower_.Message(rows, last, 1)));
  reply->WaitForEnd();
  for (const auto& receipt : sent) {
    receipt->WaitForEnd();
    EXPECT_EQ(receipt->status(), 200);
  }
  EXPECT_THAT(reply->body(), HasSubstr(EncodeTokens(Alone(request).tokens)));
}

TEST_F(CloudCutTest, NoMoreThanEightMessagesWaitForThoseBeforeThem) {
  const Request request = Asked();
  const std::vector<float> rows = lower_.RowsOf(PromptOf(request));
  const auto reply = Start("POST", "/split/answers", Encode(Cut(request)));
  reply->WaitFor("ready");
  std::vector<std::shared_ptr<FakeReply>> sent;
  for (std::size_t at = 1; at <= 8; ++at) sent.push_back(Send(lower_.Message(rows, at, 1)));
  EXPECT_EQ(Send(lower_.Message(rows, 9, 1))->status(), 503);
  Send(lower_.Message(rows, 0, 1))->WaitForEnd();
  for (const auto& receipt : sent) receipt->WaitForEnd();
  EXPECT_EQ(sent.back()->status(), 200);
  reply->Leave();
}

TEST_F(CloudCutTest, TellsHowManyTokensOfCutPromptsItTakes) {
  EXPECT_EQ(DecodeCloudHello(Start("GET", "/split/hello")->body())->cut_tokens, 96u);
  served_.cuts->EndAll();
  served_.cuts.reset();
  EXPECT_EQ(DecodeCloudHello(Start("GET", "/split/hello")->body())->cut_tokens, 0u);
  EXPECT_EQ(Post("/split/answers", Encode(Cut(Asked())))->status(), 400);
}

TEST_F(CloudCutTest, RefusesInOneLineWhatIsNoCutOfItsModel) {
  const auto refusal = [this](const CloudRequest& asked) {
    const auto reply = Post("/split/answers", Encode(asked));
    EXPECT_EQ(reply->status(), 400);
    return reply->body();
  };
  CloudRequest asked = Cut(Asked());
  asked.cut->layer = 8;
  EXPECT_THAT(refusal(asked), HasSubstr("a cut before layer 8, 1 to 7 expected"));
  asked = Cut(Asked(), {.form = StateForm::kInt8});
  asked.cut->basis ^= 1;
  EXPECT_THAT(refusal(asked), HasSubstr("another basis"));
  asked = Cut(Asked());
  asked.cut->code.rank = 1 << 20;
  EXPECT_THAT(refusal(asked), HasSubstr("rank"));
  asked = Cut(Asked());
  asked.request.max_tokens = 2;
  EXPECT_THAT(refusal(asked), HasSubstr("one token"));
  asked = Cut(Asked());
  asked.request.prompt = std::vector<TokenId>{1 << 30};
  EXPECT_THAT(refusal(asked), HasSubstr("not in the vocabulary"));
  EXPECT_EQ(served_.cuts->counters().prompts_now, 0u);
}

TEST_F(CloudCutTest, RefusesRowsThatAreNoneOfItsPromptAndGoesOnWithTheOthers) {
  EXPECT_EQ(Send("TRST")->status(), 404) << "nobody has asked";
  const Request request = Asked();
  const std::vector<float> rows = lower_.RowsOf(PromptOf(request));
  const std::size_t tokens = PromptOf(request).size();
  const auto reply = Start("POST", "/split/answers", Encode(Cut(request)));
  reply->WaitFor("ready");
  EXPECT_EQ(Start("POST", "/split/states/x7", "")->status(), 404);
  EXPECT_NE(Send("no message")->status(), 200);
  LowerLayers other(4);
  EXPECT_EQ(Send(other.Message(rows, 0, 4))->status(), 400) << "of another cut";
  std::vector<float> longer = rows;
  longer.resize(rows.size() + rows.size() / tokens);
  EXPECT_EQ(Send(lower_.Message(longer, 1, tokens))->status(), 400) << "behind the end";
  EXPECT_EQ(Send(lower_.Message(rows, 0, 4, {.form = StateForm::kInt8}))->status(), 400);
  Send(lower_.Message(rows, 0, tokens))->WaitForEnd();
  reply->WaitForEnd();
  EXPECT_THAT(reply->body(), HasSubstr(EncodeTokens(Alone(request).tokens)));
}

TEST_F(CloudCutTest, AnEndThatLeavesGivesItsRoomBack) {
  const auto reply = Start("POST", "/split/answers", Encode(Cut(Asked())));
  reply->WaitFor("ready");
  EXPECT_EQ(served_.cuts->counters().prompts_now, 1u);
  reply->Leave();
  EXPECT_EQ(served_.cuts->counters().prompts_now, 0u);
  EXPECT_EQ(Send("TRST")->status(), 404);
}

TEST_F(CloudCutTest, RowsThatOverlapOthersAreRefusedAndTheOthersAreAnswered) {
  const Request request = Asked();
  const std::vector<float> rows = lower_.RowsOf(PromptOf(request));
  const std::size_t tokens = PromptOf(request).size();
  const auto reply = Start("POST", "/split/answers", Encode(Cut(request)));
  reply->WaitFor("ready");
  const auto waits = Send(lower_.Message(rows, 4, tokens - 4));
  for (const auto& [first, count] : {std::pair<std::size_t, std::size_t>{4, 3}, {2, 3}, {6, 2}}) {
    EXPECT_EQ(Send(lower_.Message(rows, first, count))->status(), 400) << first;
  }
  Send(lower_.Message(rows, 0, 4));
  reply->WaitForEnd();
  waits->WaitForEnd();
  EXPECT_EQ(DecodeStatesReceipt(waits->body())->rows, tokens - 4);
  EXPECT_THAT(reply->body(), HasSubstr(EncodeTokens(Alone(request).tokens)));
}

TEST_F(CloudCutTest, ExactRowsThatAreNoNumbersAreRefusedBeforeAnyPass) {
  const Request request = Asked();
  const std::vector<float> rows = lower_.RowsOf(PromptOf(request));
  const auto reply = Start("POST", "/split/answers", Encode(Cut(request)));
  reply->WaitFor("ready");
  std::vector<float> bad = rows;
  bad[3] = std::numeric_limits<float>::infinity();
  const auto refused = Send(lower_.Message(bad, 0, 2));
  refused->WaitForEnd();
  EXPECT_EQ(refused->status(), 400);
  EXPECT_THAT(refused->body(), HasSubstr("not finite"));
  Send(lower_.Message(rows, 0, PromptOf(request).size()));
  reply->WaitForEnd();
  EXPECT_THAT(reply->body(), HasSubstr(EncodeTokens(Alone(request).tokens)));
}

TEST_F(CloudCutTest, WithoutNewRowsACutEndsWhateverElseIsSentAndIsNoTroubleOfTheCloud) {
  OpenCuts({.silence_seconds = 0.3});
  const Request request = Asked();
  const std::vector<float> rows = lower_.RowsOf(PromptOf(request));
  const auto reply = Start("POST", "/split/answers", Encode(Cut(request)));
  reply->WaitFor("ready");
  const std::string once = lower_.Message(rows, 0, 2);
  Send(once)->WaitForEnd();
  const Stopwatch waited;
  while (Send(once)->status() == 200 && waited.Seconds() < 20) {
    EXPECT_NE(Send("nothing")->status(), 200);
    std::this_thread::sleep_for(std::chrono::milliseconds(20));
  }
  reply->WaitForEnd();
  const auto kTooLate = static_cast<int>(Code::kResourceExhausted);
  EXPECT_THAT(reply->body(), HasSubstr("\"code\":" + std::to_string(kTooLate)));
  EXPECT_EQ(served_.cuts->counters().prompts_now, 0u);
}

TEST_F(CloudCutTest, ACutThatComesRowByRowTooSlowlyEnds) {
  OpenCuts({.silence_seconds = 1, .row_seconds = 0});
  const Request request = Asked();
  const std::vector<float> rows = lower_.RowsOf(PromptOf(request));
  const auto reply = Start("POST", "/split/answers", Encode(Cut(request)));
  reply->WaitFor("ready");
  for (std::size_t at = 0; at + 1 < PromptOf(request).size(); ++at) {
    Send(lower_.Message(rows, at, 1))->WaitForEnd();
    std::this_thread::sleep_for(std::chrono::milliseconds(200));
  }
  EXPECT_THAT(reply->body(), HasSubstr("too late"));
}

TEST_F(CloudCutTest, EndingAllEndsThoseThatWaitForTheirTurnAsWell) {
  std::vector<std::shared_ptr<FakeReply>> asked;
  for (std::uint64_t name = 0; name < 40; ++name) {
    asked.push_back(Start("POST", "/split/answers", Encode(Cut(Asked(), {}, name))));
  }
  asked.front()->WaitFor("ready");
  EXPECT_EQ(served_.cuts->waiting(), 39u);
  served_.cuts->EndAll();
  EXPECT_EQ(served_.cuts->waiting(), 0u);
  for (const auto& reply : asked) {
    reply->WaitForEnd();
    EXPECT_THAT(reply->body(), HasSubstr("the engine was closed"));
  }
  EXPECT_EQ(served_.cuts->counters().prompts_now, 0u);
}

TEST_F(CloudCutTest, AnEndThatAsksForManyTurnsLeavesSomeToAnother) {
  for (std::uint64_t name = 0; name < 40; ++name) {
    Start("POST", "/split/answers", Encode(Cut(Asked(), {}, name)));
  }
  const auto other = std::make_shared<FakeReply>();
  router_->set_rules({.keys = {"of another end"}});
  router_->Serve({.method = "POST",
                  .path = "/split/answers",
                  .headers = {{"authorization", "Bearer of another end"}},
                  .body = Encode(Cut(Asked()))},
                 other);
  EXPECT_THAT(other->body(), HasSubstr("ready"));
  other->Leave();
}

TEST_F(CloudCutTest, RowsAreDecodedByAThreadThatNoConnectionWaitsFor) {
  std::promise<void> goes_on;
  served_.cuts->decoding().Add([&goes_on] { goes_on.get_future().wait(); });
  const Request request = Asked();
  const auto reply = Start("POST", "/split/answers", Encode(Cut(request)));
  reply->WaitFor("ready");
  const auto sent =
      Send(lower_.Message(lower_.RowsOf(PromptOf(request)), 0, PromptOf(request).size()));
  Alone(request);  // the engine's thread has been at what came before
  EXPECT_EQ(served_.cuts->counters().passes, 0u);
  goes_on.set_value();
  sent->WaitForEnd();
  reply->WaitForEnd();
  EXPECT_THAT(reply->body(), HasSubstr(EncodeTokens(Alone(request).tokens)));
}

TEST_F(CloudCutTest, ACodeOfEightBitsAnswersFromFewerBytes) {
  const Request request = Asked();
  const std::vector<float> rows = lower_.RowsOf(PromptOf(request));
  const StateCode code{.form = StateForm::kInt8};
  const std::string exact = lower_.Message(rows, 0, PromptOf(request).size());
  const std::string coded = lower_.Message(rows, 0, PromptOf(request).size(), code);
  EXPECT_LT(3 * coded.size(), exact.size());
  const auto reply = Start("POST", "/split/answers", Encode(Cut(request, code)));
  reply->WaitFor("ready");
  Send(coded)->WaitForEnd();
  reply->WaitForEnd();
  EXPECT_THAT(reply->body(), HasSubstr("end"));
}

}  // namespace
}  // namespace troupe
