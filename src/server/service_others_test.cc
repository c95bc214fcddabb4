// The endpoints that other servers have.
#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "api/model_access.h"
#include "server/service_for_test.h"
#include "server/tokenize.h"

namespace troupe {
namespace {

using testing::HasSubstr;

TEST_F(ServiceTest, LlamaServersCompletionIsTheSameTextWholeAndStreamed) {
  const Json open = PostJson("/v1/completions", std::string(kSay) + "}");
  const std::string text((*open.Find("choices"))[0].Find("text")->AsString());
  const Json body = PostJson("/completion", std::string(kSay) + R"(,"return_tokens":true})");
  EXPECT_EQ(body.Find("content")->AsString(), text);
  EXPECT_EQ(body.Find("tokens")->size(), 12u);
  EXPECT_EQ(body.Find("stop_type")->AsString(), "limit");
  std::string streamed;
  const std::string stream = Post("/completion", std::string(kSay) + R"(,"stream":true})")->body();
  for (std::string_view events = stream; !events.empty();) {
    const std::string_view event = events.substr(0, events.find("\n\n"));
    events.remove_prefix(event.size() + 2);
    const Json json = Json::Parse(event.substr(6)).value();
    EXPECT_EQ(*json.Find("stop"), Json(events.empty()));
    streamed += json.Find("content")->AsString();
  }
  EXPECT_EQ(streamed, text);
  EXPECT_THAT(Start("GET", "/metrics")->body(),
              HasSubstr(R"(troupe_requests_total{endpoint="/completion",status="200"} 2)"));
}

TEST_F(ServiceTest, AModelWithoutMarksForAGapRefusesToInfill) {
  const auto reply = Post("/infill", R"({"input_prefix":"a","input_suffix":"b"})");
  EXPECT_EQ(reply->status(), 400);
  EXPECT_THAT(reply->body(), HasSubstr(R"("param":"input_suffix")"));
}

TEST_F(ServiceTest, ATemplateIsAppliedAsForAChat) {
  const std::string chat = R"({"messages":[{"role":"user","content":"Hello"}]})";
  const Json prompt = PostJson("/apply-template", chat);
  EXPECT_THAT(prompt.Find("prompt")->AsString(), HasSubstr("Hello"));
  const Json tokens = PostJson(
      "/tokenize", Json{{"content", *prompt.Find("prompt")}, {"add_special", true}}.Dump());
  const Json count = PostJson("/v1/messages/count_tokens", chat);
  EXPECT_EQ(tokens.Find("tokens")->size(), count.Find("input_tokens")->AsCount());
  EXPECT_EQ(Post("/apply-template", "{}")->status(), 400);
}

TEST_F(ServiceTest, TheTokensOfAResponseAreCountedAsItReadsThem) {
  const std::string ask = R"({"input":"Hello","max_output_tokens":1})";
  const Json answer = PostJson("/v1/responses", ask);
  EXPECT_EQ(*PostJson("/v1/responses/input_tokens", ask).Find("input_tokens"),
            *answer.Find("usage")->Find("input_tokens"));
  EXPECT_EQ(PostJson("/responses/input_tokens", ask).Find("object")->AsString(),
            "response.input_tokens");
}

TEST_F(ServiceTest, TokensAreCountedAsVllmCountsThem) {
  const Json own = PostJson("/tokenize", R"({"content":"The kernel","add_special":true})");
  const Json theirs = PostJson("/tokenize", R"({"model":"m","prompt":"The kernel"})");
  EXPECT_EQ(*theirs.Find("tokens"), *own.Find("tokens"));
  EXPECT_EQ(theirs.Find("count")->AsCount(), own.Find("tokens")->size());
  EXPECT_EQ(theirs.Find("max_model_len")->AsCount(), 96u);
  const Json bare = PostJson("/tokenize", R"({"prompt":"The kernel","add_special_tokens":false})");
  EXPECT_EQ(bare.Find("count")->AsCount() + 1, own.Find("tokens")->size());
}

TEST_F(ServiceTest, SlotsHealthAndVersionAreToldAsOthersTellThem) {
  Open({.sequences = 3});
  EXPECT_EQ(Start("GET", "/v1/health")->body(), R"({"status":"ok"})");
  EXPECT_THAT(Start("GET", "/version")->body(), HasSubstr(R"({"version":")"));
  const Json idle = Json::Parse(Start("GET", "/slots")->body()).value();
  ASSERT_EQ(idle.size(), 3u);
  EXPECT_EQ(*idle[0].Find("is_processing"), Json(false));
  EXPECT_EQ(idle[2].Find("n_ctx")->AsCount(), 96u);
  const auto stream = Start("POST", "/completion",
                            R"({"prompt":"a","n_predict":90,"ignore_eos":true,"stream":true})");
  stream->WaitFor("data: ");
  while (model().metrics().requests_decoding + model().metrics().requests_finished == 0) {
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
  const std::string busy = Start("GET", "/slots")->body();
  if (model().metrics().requests_finished == 0) {
    EXPECT_THAT(busy, HasSubstr(R"("is_processing":true)"));
  }
  stream->WaitForEnd();
}

TEST_F(ServiceTest, ClientsOfOllamasApiAreToldWhereToAsk) {
  const auto chat = Post("/api/chat", R"({"model":"m"})");
  EXPECT_EQ(chat->status(), 404);
  EXPECT_THAT(chat->body(), AllOf(HasSubstr("ollama"), HasSubstr("/v1/chat/completions")));
  EXPECT_THAT(Start("GET", "/api/tags")->body(), HasSubstr("/v1/models"));
  EXPECT_THAT(Start("GET", "/api/anything")->body(), HasSubstr("http://HOST:PORT/v1"));
  EXPECT_THAT(Start("GET", "/metrics")->body(),
              HasSubstr(R"(troupe_requests_total{endpoint="/api/*",status="404"} 3)"));
}

TEST_F(ServiceTest, WhatOtherServersHaveIsNotFoundWithAHint) {
  for (const auto& [path, hint] :
       {std::pair("/v1/rerank", "/v1/embeddings"), std::pair("/rerank", "/v1/embeddings"),
        std::pair("/embedding", "/v1/embeddings"), std::pair("/slots/0", "--prefix-file")}) {
    const auto reply = Post(path, "{}");
    EXPECT_EQ(reply->status(), 404) << path;
    EXPECT_THAT(reply->body(), HasSubstr(hint)) << path;
  }
  EXPECT_THAT(Start("GET", "/metrics")->body(),
              HasSubstr(R"(troupe_requests_total{endpoint="other",status="404"} 4)"));
}

TEST_F(ServiceTest, ASlashAtTheEndOfAPathChangesNothing) {
  EXPECT_EQ(Post("/v1/completions/", R"({"prompt":"a","max_tokens":1})")->status(), 200);
  EXPECT_EQ(Start("GET", "/v1/models/")->body(), Start("GET", "/v1/models")->body());
  EXPECT_THAT(Start("GET", "/metrics")->body(),
              HasSubstr(R"(troupe_requests_total{endpoint="/v1/completions",status="200"} 1)"));
}

TEST_F(ServiceTest, TheModelHasTheFieldsThatAnthropicsClientsRead) {
  const Json list = Json::Parse(Start("GET", "/v1/models")->body()).value();
  const Json& model = (*list.Find("data"))[0];
  EXPECT_EQ(model.Find("type")->AsString(), "model");
  EXPECT_EQ(model.Find("display_name")->AsString(), "tiny");
  EXPECT_THAT(model.Find("created_at")->AsString(), testing::MatchesRegex("20..-..-..T..:..:..Z"));
  EXPECT_EQ(*list.Find("has_more"), Json(false));
  EXPECT_EQ(list.Find("first_id")->AsString(), "tiny");
}

TEST_F(ServiceTest, AListOfTokensThatIsTooLongIsRefusedByItsField) {
  const std::string text(600'000, 'a');
  const auto pieces = [&](bool with) {
    return Post("/tokenize", Json{{"content", text}, {"with_pieces", with}}.Dump());
  };
  const auto refused = pieces(true);
  EXPECT_EQ(refused->status(), 400);
  EXPECT_THAT(refused->body(), HasSubstr(R"("param":"with_pieces")"));
  EXPECT_EQ(pieces(false)->status(), 200);
  const Tokenizer& tokenizer = ModelAccess::EngineOf(model()).tokenizer();
  const std::vector<TokenId> tokens = tokenizer.Encode(text).value();
  EXPECT_TRUE(CheckTextLength(tokens, tokenizer).ok());
  std::vector<TokenId> twice = tokens;
  twice.insert(twice.end(), tokens.begin(), tokens.end());
  EXPECT_THAT(CheckTextLength(twice, tokenizer).message(), HasSubstr("request: tokens: "));
}

}  // namespace
}  // namespace troupe
