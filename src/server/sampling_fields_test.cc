#include "server/sampling_fields.h"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "server/request_body.h"

namespace troupe {
namespace {

using testing::HasSubstr;

Result<Request> ReadFields(const std::string& body) {
  return ReadBody<Request>(body, [](const JsonValue& json) {
    Request request;
    ReadGeneration(json, request);
    return request;
  });
}

Request Quality(const std::string& quality) {
  return ReadFields(fmt::format(R"({{"quality":"{}"}})", quality)).value();
}

TEST(SamplingFields, QualityIsExactOrWhatMayBeLost) {
  EXPECT_TRUE(Quality("exact").exact);
  EXPECT_FALSE(Quality("exact").most_loss);
  EXPECT_EQ(Quality("2.5%").most_loss, 0.025);
  EXPECT_EQ(Quality("balanced").most_loss, 0.01);
  EXPECT_EQ(Quality("fast").most_loss, 0.05);
  EXPECT_FALSE(Quality("fast").exact);
  EXPECT_THAT(ReadFields(R"({"quality":"best"})").status().message(),
              AllOf(HasSubstr("quality: "), HasSubstr("balanced")));
}

// One by one, and none looked for among the others, which would take a minute.
TEST(SamplingFields, ThereMayBeABiasForEachTokenOfALargeVocabulary) {
  constexpr TokenId kTokens = 120'000;
  std::string biases = "{";
  for (TokenId id = 0; id < kTokens; ++id) biases += fmt::format(R"("{}":-100,)", id);
  biases.back() = '}';
  const auto request = ReadFields(R"({"logit_bias":)" + biases + "}").value();
  EXPECT_EQ(request.sampling.logit_bias.size(), static_cast<std::size_t>(kTokens));
}

TEST(SamplingFields, AServerIsAskedForNoMoreLossThanItMayHave) {
  const OffloadOptions one_percent{.lossiness = LossLimit{0.01}};
  EXPECT_TRUE(CheckLoss(Quality("exact"), one_percent).ok());
  EXPECT_TRUE(CheckLoss(Quality("0.5%"), one_percent).ok());
  EXPECT_TRUE(CheckLoss(Quality("balanced"), one_percent).ok());
  EXPECT_THAT(CheckLoss(Quality("fast"), one_percent).message(),
              HasSubstr("request: quality: 5%, expected at most 1%"));
  EXPECT_THAT(CheckLoss(Quality("1%"), {}).message(), HasSubstr("expected exact"));
  // Nobody has measured what these lose: such requests are answered exactly.
  EXPECT_TRUE(CheckLoss(Quality("1%"), {.lossiness = Chain{"drop"}}).ok());
  EXPECT_TRUE(CheckLoss(Quality("1%"), {.low_copies = {.decode = true}}).ok());
  EXPECT_TRUE(CheckLoss(Quality("1%"), {.peer_answers = RowForm::kInt8}).ok());
}

TEST(SamplingFields, ASaltOfTheCacheIsAShortTextThatIsNotEmpty) {
  EXPECT_EQ(ReadFields(R"({"cache_salt":"mine"})")->cache_salt, "mine");
  EXPECT_EQ(ReadFields(R"({"cache_salt":null})")->cache_salt, "");
  for (const std::string& salt :
       {std::string("\"\""), std::string("7"), '"' + std::string(257, 'a') + '"'}) {
    EXPECT_THAT(ReadFields(fmt::format(R"({{"cache_salt":{}}})", salt)).status().message(),
                testing::StartsWith("request: cache_salt: "));
  }
}

TEST(SamplingFields, WhatOtherServersWouldHoldAnAnswerToIsRefusedByItsName) {
  for (const char* field :
       {R"("regex":"[0-9]+")", R"("ebnf":"root ::= 'a'")", R"("lora":[{"id":0,"scale":1}])",
        R"("grammar_lazy":true)", R"("no_repeat_ngram_size":3)", R"("t_max_predict_ms":100)",
        R"("tfs":0.5)", R"("smoothing_factor":0.2)", R"("epsilon_cutoff":3)"}) {
    const std::string name = std::string(field).substr(1, std::string(field).find('"', 1) - 1);
    EXPECT_THAT(ReadFields(fmt::format("{{{}}}", field)).status().message(),
                testing::StartsWith("request: " + name))
        << field;
  }
  EXPECT_TRUE(ReadFields(R"({"regex":null,"lora":[],"grammar_lazy":false,"t_max_predict_ms":-1,)"
                         R"("no_repeat_ngram_size":0,"tfs":1,"smoothing_factor":0})")
                  .ok());
}

TEST(SamplingFields, ARuleThatIsNoneIsNamedByItsPlace) {
  for (const auto& [fields, place] :
       {std::pair{R"("response_format":{"type":"json_schema","json_schema":)"
                  R"({"schema":{"type":"object","properties":{"a":{"type":"hiccup"}}}}})",
                  "request: response_format.json_schema.schema: schema '#/properties/a"},
        {R"("response_format":{"type":"json_object","schema":{"enum":[]}})",
         "request: response_format.schema: "},
        {R"("json_schema":{"type":5})", "request: json_schema: "},
        {R"("grammar":"root ::= (")", "request: grammar: "}}) {
    EXPECT_THAT(ReadFields(fmt::format("{{{}}}", fields)).status().message(),
                testing::StartsWith(place))
        << fields;
  }
}

}  // namespace
}  // namespace troupe
