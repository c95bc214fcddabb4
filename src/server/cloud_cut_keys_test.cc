// Longer answers behind a cut, over a service of a small model (cloud_cut_for_test.h).
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <functional>
#include <future>
#include <limits>
#include <optional>
#include <thread>

#include "base/rng.h"
#include "server/cloud_cut.h"
#include "server/cloud_cut_for_test.h"
#include "split/wire/cloud_line.h"
#include "testing/test_seed.h"

namespace troupe {
namespace {

using testing::HasSubstr;

class CloudCutKeysTest : public CloudCutTest {
 protected:
  // Of a prompt with two whole tiles, at least.
  Request Longer(std::uint64_t seed, std::size_t tokens) {
    Request request = Asked(seed, tokens);
    std::vector<TokenId>& prompt = std::get<std::vector<TokenId>>(request.prompt);
    const std::vector<TokenId> once = prompt;
    while (prompt.size() < 40) prompt.insert(prompt.end(), once.begin(), once.end());
    return request;
  }
  // The whole tiles of its prompt.
  static std::size_t PrefixOf(const Request& request) {
    return WholeTilesBefore(PromptOf(request).size());
  }
  CloudRequest CutWithKeys(const Request& request) {
    CloudRequest asked = Cut(request);
    asked.cut->prefix = PrefixOf(request);
    asked.cut->process = 1;
    return asked;
  }
  std::vector<std::string> MessagesFor(const Request& request) {
    const std::size_t prefix = PrefixOf(request);
    std::vector<std::string> messages = lower_.KeysOf(PromptOf(request), prefix);
    const std::vector<float> rows = lower_.RowsOf(PromptOf(request));
    messages.push_back(lower_.Message(rows, 0, 5));
    messages.push_back(lower_.Message(rows, 5, prefix - 5));
    return messages;
  }
  // The tokens of its lines.
  static std::vector<TokenId> TokensIn(const std::string& body) {
    std::vector<TokenId> tokens;
    CloudLines lines;
    const std::vector<std::string> texts = lines.Take(body).value();
    for (const std::string& text : texts) {
      const CloudLine line = DecodeCloudLine(text).value();
      if (const auto* const some = std::get_if<CloudTokens>(&line)) {
        tokens.insert(tokens.end(), some->tokens.begin(), some->tokens.end());
      }
    }
    return tokens;
  }
};

TEST_F(CloudCutKeysTest, KeysAndRowsInAnyOrderAndTwiceGiveTheAnswerOfTheModelAlone) {
  Rng rng(TestSeed());
  for (std::uint64_t seed = 0; seed < 8; ++seed) {
    Request request = Longer(seed, 12);
    request.sampling.temperature = seed % 2 == 0 ? 0 : 1;
    ASSERT_GE(PrefixOf(request), 32u);
    std::vector<std::string> messages = MessagesFor(request);
    messages.push_back(messages[rng.Below(messages.size())]);
    for (std::size_t i = messages.size() - 1; i > 0; --i) {
      std::swap(messages[i], messages[rng.Below(i + 1)]);
    }
    const auto reply = Start("POST", "/split/answers", Encode(CutWithKeys(request)));
    reply->WaitFor("ready");
    std::vector<std::shared_ptr<FakeReply>> sent;
    for (const std::string& message : messages) sent.push_back(Send(message));
    reply->WaitForEnd();
    EXPECT_THAT(reply->body(), HasSubstr(R"({"end":"length")"));
    EXPECT_EQ(TokensIn(reply->body()), Alone(request).tokens) << "seed " << seed;
  }
  EXPECT_EQ(served_.cuts->went_on().kept, 8u);
  EXPECT_GT(served_.cuts->counters().stored_bytes, 0u);
  EXPECT_EQ(served_.cuts->counters().prompts_now, 0u);
  EXPECT_EQ(LeftWaiting(*served_.cuts), Bytes());
}

TEST_F(CloudCutKeysTest, AllMayComeBeforeItHasSaidThatItIsReady) {
  const Request request = Longer(3, 4);
  const std::vector<TokenId> right = Alone(request).tokens;
  const std::vector<std::string> messages = MessagesFor(request);
  const std::string asked = Encode(CutWithKeys(request));
  for (int i = 0; i < 20; ++i) {
    std::promise<std::shared_ptr<FakeReply>> started;
    std::thread asks([&] { started.set_value(Start("POST", "/split/answers", asked)); });
    for (const std::string& message : messages) {
      for (;;) {
        const auto sent = Send(message);
        sent->WaitForEnd();
        if (sent->status() == 200) break;
        ASSERT_EQ(sent->status(), 404);
      }
    }
    asks.join();
    const auto reply = started.get_future().get();
    reply->WaitForEnd();
    EXPECT_EQ(TokensIn(reply->body()), right);
  }
}

TEST_F(CloudCutKeysTest, WhatAnEndHasComputedIsFoundByItsOwnAnswerAndByNobodyElse) {
  const Request request = Longer(3, 4);
  const auto reply = Start("POST", "/split/answers", Encode(CutWithKeys(request)));
  reply->WaitFor("ready");
  for (const std::string& message : MessagesFor(request)) Send(message)->WaitForEnd();
  reply->WaitForEnd();
  const std::size_t left = PromptOf(request).size() - PrefixOf(request);
  EXPECT_THAT(reply->body(), HasSubstr("\"read\":" + std::to_string(left)));
  EXPECT_EQ(Alone(request).usage.cached_tokens, 0u);
}

TEST_F(CloudCutKeysTest, WithoutRoomInTheModelsPoolTheAnswerReadsAnewAndIsCountedSo) {
  const Request request = Longer(3, 4);
  const std::vector<TokenId> right = Alone(request).tokens;
  KvPool& pool = ModelAccess::EngineOf(model()).kv();
  std::optional<KvSequence> held;  // the engine's thread's: until the cut is over, all there is
  const std::function<void()> hold = [&] {
    if (!held) {
      held.emplace(pool.NewSequence());
      EXPECT_TRUE(held->Reserve(pool.pages() * pool.page_positions()).ok());
    }
    if (served_.cuts->counters().prompts_now > 0) return ModelAccess::Between(model(), hold);
    held.reset();
  };
  const auto reply = Start("POST", "/split/answers", Encode(CutWithKeys(request)));
  reply->WaitFor("ready");
  ModelAccess::Between(model(), hold);
  for (const std::string& message : MessagesFor(request)) Send(message)->WaitForEnd();
  reply->WaitForEnd();
  EXPECT_EQ(TokensIn(reply->body()), right);
  EXPECT_EQ(served_.cuts->went_on().no_room, 1u);
  EXPECT_EQ(served_.cuts->went_on().kept, 0u);
}

TEST_F(CloudCutKeysTest, WhatAnAnswerFoundOfItsKeysIsCountedByWhyItFoundNoMore) {
  CutHost& cuts = *served_.cuts;
  cuts.CountWentOn(/*has_found_all=*/true, /*has_no_room=*/true);
  cuts.CountWentOn(/*has_found_all=*/false, /*has_no_room=*/true);
  for (int i = 0; i < 2; ++i) cuts.CountWentOn(/*has_found_all=*/false, /*has_no_room=*/false);
  const auto went_on = cuts.went_on();
  EXPECT_EQ(went_on.kept, 1u);
  EXPECT_EQ(went_on.no_room, 1u);
  EXPECT_EQ(went_on.given_up, 2u) << "there was room, and others took it before the answer began";
}

TEST_F(CloudCutKeysTest, ARuleThatCannotBeIsRefusedBeforeTheEndHasComputedForIt) {
  ModelOptions options;
  options.answer_rules = true;
  served_.cuts->EndAll();
  model().Close();
  served_.cuts.reset();
  Open(options);
  served_.for_ends = kFits;
  OpenCuts({});
  Request request = Longer(3, 4);
  request.rule = AnswerRule{.kind = AnswerRule::Kind::kGrammar, .text = "root ::= [a-"};
  const auto refused = Post("/split/answers", Encode(CutWithKeys(request)));
  EXPECT_EQ(refused->status(), 400);
  EXPECT_EQ(served_.cuts->counters().prompts, 0u);
  request.rule->text = "root ::= [a-f]+";
  const auto reply = Start("POST", "/split/answers", Encode(CutWithKeys(request)));
  reply->WaitFor("ready");
  for (const std::string& message : MessagesFor(request)) Send(message)->WaitForEnd();
  reply->WaitForEnd();
  EXPECT_EQ(TokensIn(reply->body()), Alone(request).tokens);
}

TEST_F(CloudCutKeysTest, TheTimeOfACutAnswerIsThatSinceItsRequestCame) {
  const Request request = Longer(3, 4);
  ReloadGate gate(served_);
  Pulse pulse(std::chrono::milliseconds(10));
  EndTurns turns;
  EndDrafts drafts;
  const ForEnds shared{.pulse = pulse, .turns = turns, .drafts = drafts};
  double first = 0;
  std::promise<double> all;
  const JobListener listener{.on_first = [&](double seconds) { first = seconds; },
                             .on_end = [&](const JobEnd& end) { all.set_value(end.seconds); }};
  constexpr std::uint64_t kEnd = 1;
  const auto reply = std::make_shared<FakeReply>();
  gate.Enter(gate.NextId(), {.begin =
                                 [&](ModelUse use) {
                                   CloudCall call{.asked = CutWithKeys(request), .end = kEnd};
                                   call.came -= std::chrono::seconds(100);
                                   CloudCut::Run(std::make_shared<const ModelUse>(std::move(use)),
                                                 std::move(call), reply, shared, listener);
                                 },
                             .refuse = [](const Status&) {}});
  reply->WaitFor("ready");
  for (const std::string& message : MessagesFor(request)) {
    CloudCut::TakeStates(served_.cuts.get(), kEnd, "7", message, std::make_shared<FakeReply>());
  }
  EXPECT_GE(all.get_future().get(), 100);
  EXPECT_GE(first, 100);
  reply->WaitForEnd();
  const std::string body = reply->body();
  const std::string_view last = std::string_view(body).substr(body.find("{\"end\""));
  const CloudLine line = DecodeCloudLine(last.substr(0, last.find('\n'))).value();
  EXPECT_GE(std::get<CloudEnd>(line).queue_seconds, 100);
  served_.cuts->EndAll();  // nobody uses the model when the gate goes
  model().Close();
}

TEST_F(CloudCutKeysTest, WrongKeysOfOneProcessReachNoOtherOfTheSameKey) {
  const Request request = Longer(3, 4);
  // Of the right form and size, but of other tokens.
  Request other = request;
  for (TokenId& token : std::get<std::vector<TokenId>>(other.prompt)) token = token == 5 ? 6 : 5;
  ASSERT_EQ(PrefixOf(request), PrefixOf(other));
  const auto answer = [this](const Request& asked_for, const Request& computed,
                             std::uint64_t process) {
    CloudRequest asked = CutWithKeys(asked_for);
    asked.cut->process = process;
    const auto reply = Start("POST", "/split/answers", Encode(asked));
    reply->WaitFor("ready");
    for (const std::string& message : MessagesFor(computed)) Send(message)->WaitForEnd();
    reply->WaitForEnd();
    return TokensIn(reply->body());
  };
  const std::vector<TokenId> right = Alone(request).tokens;
  EXPECT_NE(answer(request, other, 7), right) << "what it computes wrongly is its own affair";
  EXPECT_EQ(answer(request, request, 8), right);
}

TEST_F(CloudCutKeysTest, RefusesByNameWhatCannotBeKeysOfItsPromptAndGoesOnWithTheOthers) {
  const Request request = Longer(3, 4);
  const std::vector<std::string> messages = MessagesFor(request);
  const auto reply = Start("POST", "/split/answers", Encode(CutWithKeys(request)));
  reply->WaitFor("ready");
  const auto refusal = [this](const std::string& message) {
    const auto refused = Send(message);
    refused->WaitForEnd();
    EXPECT_EQ(refused->status(), 400);
    return refused->body();
  };
  const KvType type = ModelAccess::EngineOf(model()).kv().type();
  const auto with = [&](const KeysFrame& frame, std::size_t bytes = 64) {
    return LowerLayers::KeysMessage(frame, std::vector<std::byte>(bytes));
  };
  EXPECT_THAT(refusal("TRKV"), HasSubstr("a head of 24 expected"));
  EXPECT_THAT(refusal(with({.type = type, .first_layer = 3, .layers = 1, .positions = 16})),
              HasSubstr("of 3 layers"));
  EXPECT_THAT(refusal(with({.type = type, .layers = 1, .positions = 1 << 20})),
              HasSubstr("positions expected"));
  EXPECT_THAT(refusal(with({.type = type, .layers = 1, .positions = 16})),
              HasSubstr("64 bytes of keys"));
  std::string infinite = messages.front();
  infinite[kKeysFrameBytes] = 0;
  infinite[kKeysFrameBytes + 1] = 0x7c;
  EXPECT_THAT(refusal(infinite), HasSubstr("not finite"));
  for (const std::string& message : messages) {
    const auto sent = Send(message);
    sent->WaitForEnd();
    EXPECT_EQ(sent->status(), 200);
  }
  reply->WaitForEnd();
  EXPECT_EQ(TokensIn(reply->body()), Alone(request).tokens);
}

TEST_F(CloudCutKeysTest, KeysOfAnAnswerOfOneTokenAndCutsThatCannotGoOnAreRefused) {
  const Request one = Longer(5, 1);
  const auto reply = Start("POST", "/split/answers", Encode(Cut(one)));
  reply->WaitFor("ready");
  const auto refused = Send(lower_.KeysOf(PromptOf(one), PrefixOf(one)).front());
  EXPECT_EQ(refused->status(), 400);
  EXPECT_THAT(refused->body(), HasSubstr("of 0 layers and 0 positions"));
  reply->Leave();
  const auto refusal = [this](const CloudRequest& asked) {
    const auto answer = Post("/split/answers", Encode(asked));
    EXPECT_EQ(answer->status(), 400);
    return answer->body();
  };
  CloudRequest asked = CutWithKeys(Longer(1, 5));
  asked.cut->prefix += 1;
  EXPECT_THAT(refusal(asked), HasSubstr("a multiple of 16 expected"));
  asked = CutWithKeys(Longer(1, 5));
  asked.cut->process = 0;
  EXPECT_THAT(refusal(asked), HasSubstr("process: 0, expected"));
  asked = CutWithKeys(Longer(1, 5));
  asked.cut->prefix = 96;
  EXPECT_THAT(refusal(asked), HasSubstr("a cut of the first 96 tokens of "));
  const StateCode code{.form = StateForm::kInt8};
  asked = Cut(Longer(1, 5), code);
  asked.cut->prefix = 16;
  asked.cut->process = 1;
  EXPECT_THAT(refusal(asked), HasSubstr("rows by a lossy code"));
}

TEST_F(CloudCutKeysTest, AnEndThatLeavesBeforeAllKeysHaveComeGivesItsRoomBack) {
  const Request request = Longer(2, 6);
  const std::vector<std::string> messages = MessagesFor(request);
  const auto reply = Start("POST", "/split/answers", Encode(CutWithKeys(request)));
  reply->WaitFor("ready");
  for (std::size_t i = 1; i < messages.size(); ++i) Send(messages[i])->WaitForEnd();
  EXPECT_EQ(served_.cuts->counters().prompts_now, 1u);
  reply->Leave();
  Alone(request);  // the engine's thread has let go of what it told of last
  EXPECT_EQ(served_.cuts->counters().prompts_now, 0u);
  EXPECT_EQ(Send(messages.front())->status(), 404);
}

}  // namespace
}  // namespace troupe
