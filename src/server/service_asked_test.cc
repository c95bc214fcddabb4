// What is told and allowed beside the answer itself: costs, tokens, limits.
#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "server/service_for_test.h"

namespace troupe {
namespace {

using testing::HasSubstr;

TEST_F(ServiceTest, AnAnswerSaysWhatItCostWhicheverApiItIsIn) {
  for (const auto& [path, fields] :
       {std::pair("/v1/completions", R"("prompt":"The kernel")"),
        std::pair("/v1/chat/completions", R"("messages":[{"role":"user","content":"Hello"}])"),
        std::pair("/v1/responses", R"("input":"Hello again")"),
        std::pair("/v1/messages",
                  R"("max_tokens":2,"messages":[{"role":"user","content":"Hi"}])")}) {
    const std::string ask =
        fmt::format(R"({{{},"seed":5,"max_output_tokens":2,"max_completion_tokens":2)", fields);
    PostJson(path, ask + "}");
    const Json again = PostJson(path, ask + "}");
    const Json& troupe = *again.Find("troupe");
    EXPECT_EQ(troupe.Find("seed")->AsCount(), 5u) << path;
    EXPECT_GT(troupe.Find("shared_prefix_tokens")->AsCount(), 0u) << path;
    const std::string stream = Post(path, ask + R"(,"stream":true})")->body();
    EXPECT_THAT(stream, HasSubstr(fmt::format(R"("troupe":{{"seed":5,"shared_prefix_tokens":{},)",
                                              troupe.Find("shared_prefix_tokens")->AsCount())))
        << path;
  }
}

// What lm-eval asks: how likely a text is after another, from the prompt alone.
TEST_F(ServiceTest, TheLogprobsOfAPromptAreThoseThatItsTokensHadAsAnAnswer) {
  const Json answered = PostJson(
      "/v1/completions",
      R"({"prompt":"The kernel","max_tokens":8,"temperature":0,"ignore_eos":true,"logprobs":2})");
  const Json& told = *(*answered.Find("choices"))[0].Find("logprobs");
  const Json begin =
      *PostJson("/tokenize", R"({"content":"The kernel","add_special":true})").Find("tokens");
  std::vector<TokenId> prompt;
  for (const Json& token : begin.items()) prompt.push_back(static_cast<TokenId>(token.AsCount()));
  Request request = Ask("The kernel", 8);
  request.sampling.temperature = 0;
  request.ignore_end = true;
  const Answer alone = model().Start(request)->Wait().value();
  prompt.insert(prompt.end(), alone.tokens.begin(), alone.tokens.end());
  for (const char* most : {"0", "1"}) {
    const Json echoed = PostJson(
        "/v1/completions",
        fmt::format(
            R"({{"prompt":[{0},{0}],"echo":true,"logprobs":2,"temperature":0,"max_tokens":{1}}})",
            Json(prompt).Dump(), most));
    ASSERT_EQ(echoed.Find("choices")->size(), 2u) << echoed.Dump();
    for (const Json& choice : echoed.Find("choices")->items()) {
      const Json& all = *choice.Find("logprobs");
      const std::size_t before = begin.size();
      ASSERT_EQ(all.Find("token_logprobs")->size(), prompt.size() + (most[0] == '1' ? 1 : 0));
      EXPECT_TRUE((*all.Find("token_logprobs"))[0].IsNull());
      for (std::size_t i = 0; i < alone.tokens.size(); ++i) {
        for (const char* list : {"tokens", "token_logprobs", "top_logprobs"}) {
          EXPECT_EQ((*all.Find(list))[before + i], (*told.Find(list))[i]) << list << " " << i;
        }
      }
      EXPECT_THAT(choice.Find("text")->AsString(), testing::StartsWith("The kernel" + alone.text));
    }
  }
}

TEST_F(ServiceTest, AnAnswerEndsAtTheTokensThatItIsToStopAt) {
  Request request = Ask("The kernel", 24, 5);
  request.sampling.temperature = 0.9;
  request.ignore_end = true;
  const std::vector<TokenId> tokens = model().Start(request)->Wait()->tokens;
  const TokenId last = tokens[9];
  const auto first = std::ranges::find(tokens, last) - tokens.begin();
  const Json body =
      PostJson("/v1/completions", fmt::format(R"({{"prompt":"The kernel","n_predict":24,"seed":5,)"
                                              R"("temperature":0.9,"ignore_eos":true,)"
                                              R"("stop_token_ids":[{}]}})",
                                              last));
  EXPECT_EQ((*body.Find("choices"))[0].Find("finish_reason")->AsString(), "stop");
  EXPECT_EQ(body.Find("usage")->Find("completion_tokens")->AsCount(),
            static_cast<std::uint64_t>(first));
}

TEST_F(ServiceTest, TokensAreToldAsAsked) {
  const auto tokens = [&](const char* fields) {
    return PostJson("/tokenize", fmt::format(R"({{"content":"né<s>"{}}})", fields))
        .Find("tokens")
        ->Dump();
  };
  const std::string plain = tokens("");
  const std::size_t size = Json::Parse(plain)->size();
  EXPECT_EQ(Json::Parse(tokens(R"(,"add_special":true)"))->size(), size + 1);
  EXPECT_GT(Json::Parse(tokens(R"(,"parse_special":false)"))->size(), size);
  const Json pieces = *Json::Parse(tokens(R"(,"with_pieces":true)"));
  ASSERT_EQ(pieces.size(), size);
  std::string bytes;
  for (std::size_t i = 0; i < size; ++i) {
    EXPECT_EQ(*pieces[i].Find("id"), (*Json::Parse(plain))[i]);
    const Json& piece = *pieces[i].Find("piece");
    if (piece.IsString()) bytes += piece.AsString();
    for (std::size_t b = 0; !piece.IsString() && b < piece.size(); ++b) {
      bytes += static_cast<char>(piece[b].AsCount());
    }
  }
  EXPECT_EQ(bytes, " né<s>");
}

TEST_F(ServiceTest, IdsOutsideTheVocabularyAreRefusedByTheirField) {
  for (const auto& [path, body, field] :
       {std::tuple("/v1/completions", R"({"prompt":[1,99999999]})", "prompt"),
        std::tuple("/v1/completions", R"({"prompt":[[1],[99999999]]})", "prompt[1]"),
        std::tuple("/v1/completions", R"({"prompt":[99999999],"echo":true})", "prompt"),
        std::tuple("/v1/completions", R"({"prompt":"a","stop_token_ids":[1,99999999]})",
                   "stop_token_ids"),
        std::tuple("/completion", R"({"prompt":[99999999]})", "prompt"),
        std::tuple("/v1/chat/completions",
                   R"({"messages":[{"role":"user","content":"a"}],"logit_bias":{"99999999":1}})",
                   "logit_bias"),
        std::tuple("/detokenize", R"({"tokens":[99999999]})", "tokens")}) {
    const auto reply = Post(path, body);
    EXPECT_EQ(reply->status(), 400) << body;
    const Json error = *Json::Parse(reply->body()).value().Find("error");
    EXPECT_EQ(*error.Find("param"), Json(field)) << reply->body();
    EXPECT_THAT(std::string(error.Find("message")->AsString()),
                testing::AllOf(HasSubstr("99999999"), testing::Not(HasSubstr(".gguf"))));
  }
}

TEST_F(ServiceTest, ARuleThatTakesTooMuchWorkIsNamedByItsField) {
  Open({.answer_rules = true});
  const std::string costly = R"("^([a-z]{0,50} ?[a-z]{0,50}){0,100}$")";
  const std::string schema = R"({"type":"string","pattern":)" + costly + "}";
  for (const auto& [field, value] :
       {std::pair("grammar", std::string(R"("root ::= ([a-z]{0,50} [a-z]{0,50}){0,500}")")),
        std::pair("json_schema", schema),
        std::pair("response_format",
                  R"({"type":"json_schema","json_schema":{"schema":)" + schema + "}}")}) {
    const std::string ask =
        fmt::format(R"({{"prompt":"The kernel","max_tokens":60,"temperature":2,"seed":1,"{}":{}}})",
                    field, value);
    const auto reply = Post("/v1/completions", ask);
    ASSERT_EQ(reply->status(), 400) << reply->body();
    const Json error = *Json::Parse(reply->body()).value().Find("error");
    EXPECT_THAT(std::string(error.Find("param")->AsString()), testing::StartsWith(field));
  }
}

TEST_F(ServiceTest, LimitsOfTheServerHoldWhateverARequestSays) {
  served_.options.most_tokens = 3;
  service_->Adopt(served_.options);
  const std::string ask = R"({"prompt":"a","ignore_eos":true,"max_tokens":)";
  const auto tokens = [&](const char* most) {
    return PostJson("/v1/completions", ask + most + "}")
        .Find("usage")
        ->Find("completion_tokens")
        ->AsCount();
  };
  EXPECT_EQ(tokens("50"), 3u);
  EXPECT_EQ(tokens("2"), 2u);
  served_.options.most_tokens.reset();
  served_.options.most_time = std::chrono::nanoseconds(1);
  service_->Adopt(served_.options);
  EXPECT_EQ(Post("/v1/completions", ask + R"(50,"timeout":100})")->status(), 504);
}

TEST_F(ServiceTest, WhoAsksForLessThanExactIsToldWhatThisServerMayLose) {
  EXPECT_EQ(Post("/v1/completions", R"({"prompt":"a","max_tokens":1,"quality":"exact"})")->status(),
            200);
  for (const char* quality : {"1%", "fast"}) {
    const auto reply =
        Post("/v1/completions",
             fmt::format(R"({{"prompt":"a","max_tokens":1,"quality":"{}"}})", quality));
    EXPECT_EQ(reply->status(), 400);
    EXPECT_THAT(reply->body(),
                AllOf(HasSubstr("expected exact"), HasSubstr(R"("param":"quality")")));
  }
}

TEST_F(ServiceTest, WhatAnswersLoseBesideTheModelIsToldAndLimited) {
  service_.reset();
  served_.quality = {.lossiness = LossLimit{0.01}, .text = "cut prompts (at most 1%)"};
  service_ = std::make_unique<Service>(served_, pulse_);
  router_ = std::make_unique<Router>(AccessRules());
  service_->AddTo(*router_);
  EXPECT_THAT(Start("GET", "/props")->body(),
              HasSubstr(R"x("lossiness":"cut prompts (at most 1%)")x"));
  const auto status = [this](const std::string& quality) {
    return Post("/v1/completions",
                fmt::format(R"({{"prompt":"a","max_tokens":1,"quality":"{}"}})", quality))
        ->status();
  };
  EXPECT_EQ(status("0.5%"), 200);
  EXPECT_EQ(status("exact"), 200);
  EXPECT_EQ(status("fast"), 400);
}

}  // namespace
}  // namespace troupe
