// Answers that an end has chosen here, over a service of a small model and without sockets.
#include "server/cloud_answer.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fmt/format.h>

#include <future>

#include "api/model_access.h"
#include "server/service_for_test.h"
#include "split/wire/cloud_line.h"

namespace troupe {
namespace {

using testing::HasSubstr;

constexpr ModelProof kProof{.model = {1, 2}, .arithmetic = 3};

class CloudAnswerTest : public ServiceTest {
 protected:
  void SetUp() override {
    Open();
    served_.for_ends = kProof;
  }

  // A request with its prompt as tokens, and what the model alone answers.
  Request Asked(std::size_t tokens = 12) {
    Request request = Ask("The kernel", tokens, 5);
    request.prompt = model().PromptTokens(request.prompt).value();
    request.exact = true;
    request.ignore_end = true;
    return request;
  }
  Answer Alone(const Request& request) { return model().Start(request)->Wait().value(); }
  static std::string Body(const Request& request, ModelProof proof = kProof) {
    return Encode(CloudRequest{.proof = proof, .request = request});
  }

  struct Said {
    std::vector<TokenId> tokens;
    std::optional<CloudEnd> end;
    std::vector<double> waits;
    Status failure;
  };
  static Said LinesIn(const std::string& body) {
    Said said;
    const std::vector<std::string> lines = CloudLines().Take(body).value();
    for (const std::string& text : lines) {
      const CloudLine line = DecodeCloudLine(text).value();
      if (const auto* const some = std::get_if<CloudTokens>(&line)) {
        said.tokens.insert(said.tokens.end(), some->tokens.begin(), some->tokens.end());
      } else if (const auto* const end = std::get_if<CloudEnd>(&line)) {
        said.end = *end;
      } else if (const auto* const wait = std::get_if<CloudWait>(&line)) {
        said.waits.push_back(wait->seconds);
      } else {
        said.failure = std::get<CloudFailure>(line).status;
      }
    }
    return said;
  }
};

TEST_F(CloudAnswerTest, GivesTheTokensOfTheModelAloneAndWhatTheyTook) {
  const Request request = Asked();
  const Answer alone = Alone(request);
  const Said said = LinesIn(Post("/split/answers", Body(request))->body());
  EXPECT_EQ(said.tokens, alone.tokens);
  EXPECT_EQ(said.end->reason, alone.finish);
  EXPECT_LE(said.end->read, alone.usage.prompt_tokens);
  EXPECT_GT(said.end->decode_seconds, 0);
}

TEST_F(CloudAnswerTest, GoesOnBehindTheTokensThatTheEndHas) {
  Request request = Asked();
  const Answer alone = Alone(request);
  request.begun.assign(alone.tokens.begin(), alone.tokens.begin() + 5);
  const Said said = LinesIn(Post("/split/answers", Body(request))->body());
  EXPECT_EQ(said.tokens, std::vector<TokenId>(alone.tokens.begin() + 5, alone.tokens.end()));
}

TEST_F(CloudAnswerTest, SaysThatItLivesWhileItReads) {
  const auto reply = Post("/split/answers", Body(Asked(80)));
  EXPECT_EQ(reply->head().content_type, "application/x-ndjson");
}

TEST_F(CloudAnswerTest, RefusesAnotherModelOtherBytesAndWhatIsNoRequest) {
  ModelProof other = kProof;
  other.arithmetic = 4;
  const auto refused = Post("/split/answers", Body(Asked(), other));
  EXPECT_EQ(refused->status(), 409);
  EXPECT_THAT(refused->body(), HasSubstr("the end computes other bytes"));
  EXPECT_EQ(Post("/split/answers", "{}")->status(), 400);
  Request request = Asked();
  request.prompt = std::vector<TokenId>{1 << 30};
  EXPECT_EQ(Post("/split/answers", Body(request))->status(), 400);
}

TEST_F(CloudAnswerTest, AServerThatWasNotToldToServeEndsServesNone) {
  served_.for_ends.reset();
  EXPECT_EQ(Post("/split/answers", Body(Asked()))->status(), 404);
  const auto hello = Start("GET", "/split/hello");
  EXPECT_EQ(hello->status(), 404);
  EXPECT_THAT(hello->body(), HasSubstr("--for-ends"));
}

TEST_F(CloudAnswerTest, TellsItsModelAndWhatItHasMeasured) {
  (void)Alone(Asked());
  const CloudHello hello = DecodeCloudHello(Start("GET", "/split/hello")->body()).value();
  EXPECT_EQ(hello.proof, kProof);
  EXPECT_EQ(hello.context, 96u);
  EXPECT_TRUE(hello.checks_drafts);
  EXPECT_GT(hello.load.token_seconds, 0);
  EXPECT_GT(hello.load.read_seconds, 0);
}

TEST_F(CloudAnswerTest, GivesAsManyBytesAsTheLinkIsToBeMeasuredWith) {
  EXPECT_EQ(Post("/split/measure", R"({"bytes":1000,"filler":"xx"})")->body().size(), 1000u);
  EXPECT_EQ(Post("/split/measure", R"({"bytes":1048577})")->status(), 400);
  served_.for_ends.reset();
  EXPECT_EQ(Post("/split/measure", R"({"bytes":1})")->status(), 404);
}

TEST_F(CloudAnswerTest, ADraftFindsTheAnswerOfItsEndAndChangesNoByte) {
  Open({.sequences = 1});
  served_.for_ends = kProof;
  const Request request = Asked(80);
  const Answer alone = Alone(request);
  const auto offer = [&](const std::vector<TokenId>& tokens, std::uint64_t name) {
    return Post("/split/drafts", Encode(DraftOffer{.drafts = name, .tokens = tokens}));
  };
  const std::vector<TokenId> right(alone.tokens.begin(), alone.tokens.begin() + 60);
  const std::vector<TokenId> wrong(20, 5);
  EXPECT_EQ(offer(right, 7)->status(), 404) << "nobody chooses such an answer";
  // Offers find an answer that waits for its turn, too: here long enough for those below.
  std::vector<std::shared_ptr<FakeReply>> before;
  for (int i = 0; i < 8; ++i) before.push_back(Start("POST", "/split/answers", Body(request)));
  const auto reply = Start("POST", "/split/answers",
                           Encode(CloudRequest{.proof = kProof, .request = request, .drafts = 7}));
  EXPECT_EQ(offer(wrong, 7)->status(), 200);
  const auto size = static_cast<TokenId>(ModelAccess::EngineOf(model()).tokenizer().size());
  for (const TokenId id : {size, TokenId{1 << 30}}) {
    const auto no_token = offer({alone.tokens[0], id}, 7);
    EXPECT_EQ(no_token->status(), 400);
    EXPECT_THAT(no_token->body(), HasSubstr(fmt::format("token id {}, expected ids of", id)));
  }
  const auto taken = offer(right, 7);
  EXPECT_TRUE(DecodeDraftVerdict(taken->body()).ok()) << taken->body();
  EXPECT_EQ(offer(right, 8)->status(), 404);
  reply->WaitForEnd();
  EXPECT_EQ(LinesIn(reply->body()).tokens, alone.tokens);
  EXPECT_EQ(Post("/split/drafts", "{}")->status(), 400);
}

TEST_F(CloudAnswerTest, EndsHaveTheirTurnsByTheirKeys) {
  Open({.sequences = 1});
  served_.for_ends = kProof;
  router_->set_rules({.keys = {"busy", "calm"}});
  Request request = Asked(30);
  std::vector<std::shared_ptr<FakeReply>> replies;
  const auto ask = [&](std::string key) {
    replies.push_back(std::make_shared<FakeReply>());
    router_->Serve({.method = "POST",
                    .path = "/split/answers",
                    .headers = {{"Authorization", "Bearer " + key}},
                    .body = Body(request)},
                   replies.back());
  };
  for (int i = 0; i < 8; ++i) ask("busy");
  ask("calm");
  const auto ended = [&] {
    return std::ranges::count_if(replies, [](const auto& reply) {
      return reply->body().find("\"end\"") != std::string::npos;
    });
  };
  replies.back()->WaitForEnd();
  EXPECT_LE(ended(), 5) << "the calm end waited for all of the busy one";
  for (const auto& reply : replies) {
    reply->WaitForEnd();
    EXPECT_EQ(LinesIn(reply->body()).tokens, LinesIn(replies[0]->body()).tokens);
  }
}

TEST(EndOf, IsTheSameHoweverAnEndSendsItsKey) {
  const auto end = [](std::string name, std::string value) {
    return EndOf({.headers = {{std::move(name), std::move(value)}}});
  };
  const std::uint64_t one = end("Authorization", "Bearer one");
  EXPECT_EQ(end("authorization", "bearer one"), one);
  EXPECT_EQ(end("Authorization", "bEaReR one"), one);
  EXPECT_EQ(end("X-Api-Key", "one"), one);
  EXPECT_NE(end("Authorization", "Bearer other"), one);
  EXPECT_EQ(end("Authorization", "Basic one"), EndOf({})) << "that is no key";
}

TEST_F(CloudAnswerTest, WithoutKeysAllEndsAreOneWhateverTheySend) {
  Open({.sequences = 1});
  served_.for_ends = kProof;
  (void)Alone(Asked(60));  // what answers take is measured
  std::promise<void> all_looked;
  ModelAccess::Between(model(), [looked = all_looked.get_future().share()] { looked.wait(); });
  std::vector<std::shared_ptr<FakeReply>> replies;
  const auto ask = [&](std::string method, std::string path, std::string key, std::string body) {
    auto reply = std::make_shared<FakeReply>();
    router_->Serve({.method = std::move(method),
                    .path = std::move(path),
                    .headers = {{"x-api-key", std::move(key)}},
                    .body = std::move(body)},
                   reply);
    return reply;
  };
  for (int i = 0; i < 5; ++i) {
    replies.push_back(ask("POST", "/split/answers", "one key", Body(Asked(60))));
  }
  const auto before = [&](std::string key) {
    return DecodeCloudHello(ask("GET", "/split/hello", std::move(key), "")->body())->load.under_way;
  };
  EXPECT_GE(before("one key"), 4u);
  EXPECT_EQ(before("a new key"), before("one key")) << "it brings no turn of its own";
  all_looked.set_value();
  for (const auto& reply : replies) reply->WaitForEnd();
}

TEST_F(CloudAnswerTest, AnAnswerThatWaitsIsToldForHowLongAndEachHowBusyTheCloudIs) {
  Open({.sequences = 1});
  served_.for_ends = kProof;
  (void)Alone(Asked(60));  // what answers take is measured
  const std::string body = Body(Asked(60));
  std::vector<std::shared_ptr<FakeReply>> replies;
  std::promise<void> all_came;
  ModelAccess::Between(model(), [came = all_came.get_future().share()] { came.wait(); });
  for (int i = 0; i < 40; ++i) replies.push_back(Start("POST", "/split/answers", body));
  all_came.set_value();
  for (const auto& reply : replies) reply->WaitForEnd();
  const Said last = LinesIn(replies[39]->body()), thirtieth = LinesIn(replies[29]->body());
  ASSERT_FALSE(last.waits.empty());
  ASSERT_FALSE(thirtieth.waits.empty());
  EXPECT_GT(last.waits[0], thirtieth.waits[0]);
  const std::string& told = replies[39]->body();
  EXPECT_LT(told.rfind("wait_s"), told.find("[")) << "it is not told to wait once it is read";
  EXPECT_GT(LinesIn(replies[1]->body()).end->load.under_way, last.end->load.under_way);
  EXPECT_GT(LinesIn(replies[1]->body()).end->load.to_read, last.end->load.to_read);
  EXPECT_GT(last.end->load.read_seconds, 0);
}

TEST_F(CloudAnswerTest, AFullCloudRefusesWhatHasBegunByALineThatIsNoTroubleOfTheCloud) {
  Open({.sequences = 1, .queue = 1});
  std::promise<void> looked;
  ModelAccess::Between(model(), [until = looked.get_future().share()] { until.wait(); });
  std::vector<Generation> own;
  for (Result<Generation> next = model().Start(Asked(4)); next.ok();
       next = model().Start(Asked(4))) {
    own.push_back(*std::move(next));
    ASSERT_LT(own.size(), 50u);
  }
  ReloadGate gate(served_);
  Pulse pulse(pulse_);
  EndTurns turns;
  EndDrafts drafts;
  const auto reply = std::make_shared<FakeReply>();
  reply->Begin({});  // as one that was told to wait, or was cut
  CloudCall call{.asked = {.proof = kProof, .request = Asked()}, .has_begun = true};
  RunCloudAnswer(std::make_shared<const ModelUse>(*std::move(gate.Look())), std::move(call), reply,
                 {.pulse = pulse, .turns = turns, .drafts = drafts}, {});
  const Status refused = LinesIn(reply->body()).failure;
  EXPECT_EQ(refused.code(), Code::kResourceExhausted) << "an end takes others for the cloud's";
  EXPECT_THAT(refused.message(), HasSubstr("wait"));
  looked.set_value();
}

TEST_F(CloudAnswerTest, OneThatLeavesWhileItWaitsIsBeforeNobody) {
  Open({.sequences = 1});
  served_.for_ends = kProof;
  const std::string body = Body(Asked(60));
  std::vector<std::shared_ptr<FakeReply>> replies;
  std::promise<void> all_looked;
  ModelAccess::Between(model(), [looked = all_looked.get_future().share()] { looked.wait(); });
  for (int i = 0; i < 5; ++i) replies.push_back(Start("POST", "/split/answers", body));
  const auto load = [&] { return DecodeCloudHello(Start("GET", "/split/hello")->body())->load; };
  const CloudLoad before = load();
  for (const std::size_t i : {1, 2, 4}) replies[i]->Leave();
  EXPECT_EQ(load().under_way, before.under_way - 3);
  EXPECT_LT(load().to_read, before.to_read);
  all_looked.set_value();
  for (const std::size_t i : {0, 3}) replies[i]->WaitForEnd();
  EXPECT_EQ(LinesIn(replies[3]->body()).tokens, LinesIn(replies[0]->body()).tokens);
  EXPECT_EQ(load().under_way, 0u);
}

TEST_F(CloudAnswerTest, AnEndThatLeavesCancelsItsAnswer) {
  Open({.sequences = 1});
  served_.for_ends = kProof;
  Request request = Asked(80);
  const auto reply = Start("POST", "/split/answers", Body(request));
  reply->WaitFor("[");
  reply->Leave();
  EXPECT_EQ(Alone(Asked(2)).tokens.size(), 2u) << "the only sequence is free again";
}

}  // namespace
}  // namespace troupe
