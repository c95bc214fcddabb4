#include "server/embeddings.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/json.h"

namespace troupe {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

std::string ErrorOf(std::string_view body) {
  const auto call = ReadEmbeddingsCall(body, 4);
  EXPECT_FALSE(call.ok()) << body;
  return call.ok() ? "" : call.status().message();
}

std::vector<ChoiceAnswer> Vectors() {
  std::vector<ChoiceAnswer> choices(2);
  choices[0].answer.embedding = {1, 0};
  choices[0].answer.usage.prompt_tokens = 3;
  choices[1].answer.embedding = {-0.5f, 0.25f};
  choices[1].answer.usage.prompt_tokens = 4;
  return choices;
}

TEST(Embeddings, AnInputIsATextTokensOrSeveralOfThem) {
  EXPECT_THAT(ReadEmbeddingsCall(R"({"input":"a"})", 4)->inputs,
              ElementsAre(Prompt(std::string("a"))));
  EXPECT_THAT(ReadEmbeddingsCall(R"({"input":[[1,2],[3]]})", 4)->inputs,
              ElementsAre(Prompt(std::vector<TokenId>{1, 2}), Prompt(std::vector<TokenId>{3})));
  EXPECT_TRUE(ReadEmbeddingsCall(R"({"input":"a","encoding_format":"base64"})", 4)->base64);
  EXPECT_TRUE(ReadEmbeddingsCall(R"({"input":"a","dimensions":4})", 4).ok());
}

TEST(Embeddings, WhatIsWrongIsNamedByItsField) {
  EXPECT_THAT(ErrorOf("{}"), HasSubstr("no 'input'"));
  EXPECT_THAT(ErrorOf(R"({"input":[]})"), HasSubstr("input: "));
  EXPECT_THAT(ErrorOf(R"({"input":"a","encoding_format":"int8"})"), HasSubstr("encoding_format: "));
  EXPECT_THAT(ErrorOf(R"({"input":"a","dimensions":3})"), HasSubstr("dimensions: "));
  EXPECT_THAT(ErrorOf(R"({"input":"a","dimensions":5})"), HasSubstr("dimensions: "));
}

// As many tokens as the text has bytes.
Result<std::vector<TokenId>> Encode(const Prompt& input) {
  if (const auto* const ids = std::get_if<std::vector<TokenId>>(&input)) return *ids;
  return std::vector<TokenId>(std::get<std::string>(input).size(), 7);
}

TEST(Embeddings, RequestsHaveTheTokensOfTheirTexts) {
  const auto requests = EmbeddingRequests({.inputs = {std::string("ab"), std::vector<TokenId>{3}}},
                                          Pooling::kLast, /*context=*/2, Encode);
  EXPECT_EQ(requests->count(), 2u);
  EXPECT_EQ(requests->prompts, (std::vector<std::vector<TokenId>>{{7, 7}, {3}}));
  EXPECT_EQ(requests->common.embed, Pooling::kLast);
}

TEST(Embeddings, AnInputThatDoesNotFitIsNamedByItsPlace) {
  const auto refusal = [](std::vector<Prompt> inputs, std::size_t context) {
    return EmbeddingRequests({.inputs = std::move(inputs)}, Pooling::kMean, context, Encode)
        .status();
  };
  const Status too_long = refusal({std::string("a"), std::string("bbbb")}, 3);
  EXPECT_EQ(too_long.code(), Code::kResourceExhausted);
  EXPECT_THAT(too_long.message(), HasSubstr("request: input[1]: This model"));
  EXPECT_THAT(refusal({std::string("bbbb")}, 3).message(), HasSubstr("request: input: This model"));
  EXPECT_THAT(refusal({std::string("a"), std::string()}, 3).message(),
              HasSubstr("request: input[1]: no tokens"));
  const std::string many(500'000, 'a');
  EXPECT_TRUE(refusal({many, many}, 1'000'000).ok());
  EXPECT_THAT(refusal({many, many, many}, 1'000'000).message(),
              HasSubstr("request: input: more than"));
}

TEST(Embeddings, VectorsComeInTheOrderOfTheInputs) {
  const std::string body = MakeEmbeddingsFormat({}, "m")->Whole(Vectors()).body;
  EXPECT_EQ(body, R"({"object":"list","data":[{"object":"embedding","index":0,"embedding":[1,0]},)"
                  R"({"object":"embedding","index":1,"embedding":[-0.5,0.25]}],"model":"m",)"
                  R"("usage":{"prompt_tokens":7,"total_tokens":7}})"
                  "\n");
}

TEST(Embeddings, Base64IsOfTheFloatsBytes) {
  const auto format = MakeEmbeddingsFormat({.inputs = {}, .base64 = true}, "m");
  const Json body = Json::Parse(format->Whole(Vectors()).body).value();
  // 00 00 80 3f 00 00 00 00, and 00 00 00 bf 00 00 80 3e.
  EXPECT_EQ((*body.Find("data"))[0].Find("embedding")->AsString(), "AACAPwAAAAA=");
  EXPECT_EQ((*body.Find("data"))[1].Find("embedding")->AsString(), "AAAAvwAAgD4=");
}

TEST(Embeddings, NumbersAreTheShortestThatAreReadAsTheSame) {
  std::vector<ChoiceAnswer> choices(1);
  choices[0].answer.embedding = {0.0123f, -1.5e-20f, 1.0f / 3};
  EXPECT_THAT(MakeEmbeddingsFormat({}, "m")->Whole(choices).body,
              HasSubstr("[0.0123,-1.5e-20,0.33333334]"));
}

TEST(Embeddings, MoreThanIsKeptForAClientIsRefusedBeforeItIsComputed) {
  EmbeddingsCall call{.inputs = std::vector<Prompt>(200)};
  EXPECT_THAT(CheckSize(call, 2048).message(), HasSubstr("input: 200 vectors"));
  call.base64 = true;
  EXPECT_TRUE(CheckSize(call, 2048).ok());
}

}  // namespace
}  // namespace troupe
