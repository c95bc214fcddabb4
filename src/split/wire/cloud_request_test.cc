#include "split/wire/cloud_request.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <limits>

#include "base/rng.h"
#include "testing/edited_text.h"
#include "testing/test_seed.h"

namespace troupe {
namespace {

using testing::HasSubstr;

Result<CloudRequest> Read(const std::string& text) {
  return ReadJson<CloudRequest>("request", text, ReadCloudRequest);
}

std::vector<TokenId> RandomIds(Rng& rng) {
  std::vector<TokenId> ids(rng.Below(20));
  for (TokenId& id : ids) id = static_cast<TokenId>(rng.Below(1U << 31));
  return ids;
}

CloudRequest RandomCloudRequest(Rng& rng) {
  CloudRequest asked{.proof = {.model = {rng.Next(), rng.Next()}, .arithmetic = rng.Next()},
                     .request = {.prompt = RandomIds(rng),
                                 .max_tokens = rng.Below(1000),
                                 .sampling = {.temperature = rng.Uniform(),
                                              .top_k = static_cast<std::uint32_t>(rng.Below(100)),
                                              .top_p = rng.Uniform(),
                                              .min_p = rng.Uniform(),
                                              .repetition_penalty = 1 + rng.Uniform(),
                                              .frequency_penalty = rng.Normal(),
                                              .presence_penalty = rng.Normal(),
                                              .logit_bias = {},
                                              .seed = rng.Next()},
                                 .ignore_end = rng.Below(2) == 0,
                                 .show_marks = rng.Below(2) == 0,
                                 .begun = RandomIds(rng),
                                 .exact = true,
                                 .timeout = {}}};
  if (rng.Below(2) == 0) asked.request.stop_tokens = RandomIds(rng);
  if (rng.Below(2) == 0) asked.request.stop = {"a\n", "\xC3\xA9"};
  for (std::uint64_t n = rng.Below(4); n > 0; --n) {
    const TokenId id = static_cast<TokenId>(rng.Below(1000));
    asked.request.sampling.logit_bias[id] = rng.Below(3) == 0
                                                ? -std::numeric_limits<float>::infinity()
                                                : static_cast<float>(rng.Normal());
  }
  if (rng.Below(3) == 0) {
    asked.request.sampling.dry = {.multiplier = rng.Uniform(),
                                  .base = 1 + rng.Uniform(),
                                  .allowed_length = static_cast<std::uint32_t>(rng.Below(9)),
                                  .window = static_cast<std::uint32_t>(rng.Below(99)),
                                  .breakers = {}};
    if (rng.Below(2) == 0) asked.request.sampling.dry.breakers = {"\n", "\xC3\xA9"};
  }
  if (rng.Below(3) == 0) {
    asked.request.sampling.xtc = {.probability = rng.Uniform(), .threshold = rng.Uniform()};
  }
  if (rng.Below(3) == 0) {
    asked.request.rule = AnswerRule{.kind = AnswerRule::Kind::kGrammar, .text = "root ::= \"a\""};
  }
  if (rng.Below(3) == 0) {
    asked.request.reasoning = Reasoning{.open = "<think>", .closes = {"</think>"}, .begun = true};
    if (rng.Below(2) == 0) {
      asked.request.reasoning->most_tokens = rng.Below(100);
      asked.request.reasoning->end = "</think>";
    }
  }
  if (rng.Below(3) == 0) asked.request.cache_salt = "\xC3\xA9 1";
  if (rng.Below(2) == 0) asked.drafts = rng.Next();
  if (rng.Below(2) == 0) {
    asked.cut = CutAsk{.name = rng.Next(),
                       .layer = 1 + static_cast<std::uint32_t>(rng.Below(50)),
                       .code = {.form = StateForm::kInt8, .rans = rng.Below(2) == 0},
                       .basis = rng.Next()};
  }
  if (rng.Below(3) == 0) asked.request.timeout = std::chrono::milliseconds(1 + rng.Below(10'000));
  return asked;
}

TEST(CloudRequest, ReadsAllThatDecidesAnAnswersBytes) {
  Rng rng(TestSeed());
  for (int round = 0; round < 500; ++round) {
    const CloudRequest asked = RandomCloudRequest(rng);
    const CloudRequest read = Read(Encode(asked)).value();
    const Request &a = asked.request, &b = read.request;
    ASSERT_EQ(asked.proof, read.proof);
    ASSERT_EQ(asked.drafts, read.drafts);
    ASSERT_EQ(asked.cut, read.cut);
    ASSERT_EQ(a.prompt, b.prompt);
    ASSERT_EQ(a.begun, b.begun);
    ASSERT_EQ(a.max_tokens, b.max_tokens);
    ASSERT_EQ(a.sampling, b.sampling);
    ASSERT_EQ(a.stop, b.stop);
    ASSERT_EQ(a.ignore_end, b.ignore_end);
    ASSERT_EQ(a.stop_tokens, b.stop_tokens);
    ASSERT_EQ(a.show_marks, b.show_marks);
    ASSERT_EQ(a.rule, b.rule);
    ASSERT_EQ(a.reasoning, b.reasoning);
    ASSERT_EQ(a.timeout, b.timeout);
    ASSERT_TRUE(b.exact);
  }
}

TEST(CloudRequest, SaysWhereItIsWrong) {
  const std::string good = Encode({.proof = {}, .request = {.prompt = std::vector<TokenId>{7}}});
  const auto message = [&](std::string_view from, std::string_view to) {
    return Read(Edited(good, from, to)).status().message();
  };
  EXPECT_THAT(message("\"prompt\":[7]", "\"prompt\":[-7]"), HasSubstr("prompt[0]"));
  EXPECT_THAT(message("\"prompt\":[7]", "\"prompt\":\"text\""), HasSubstr("array of token ids"));
  EXPECT_THAT(message("\"stop\":[]", "\"stop\":[],\"drafts\":-1"), HasSubstr("drafts"));
  EXPECT_THAT(message("\"seed\":0", "\"seed\":-1"), HasSubstr("sampling.seed"));
  EXPECT_THAT(message("\"logit_bias\":{}", "\"logit_bias\":{\"x\":1}"), HasSubstr("token ids"));
  EXPECT_THAT(message("\"seed\":0", "\"seed\":0,\"xtc\":{\"probability\":\"x\"}"),
              HasSubstr("sampling.xtc.probability"));
  EXPECT_THAT(message("\"stop\":[]", "\"stop\":[],\"rule\":{\"kind\":\"regex\",\"text\":\"\"}"),
              HasSubstr("rule.kind"));
  for (const std::string& salt : {std::string(), std::string(257, 's')}) {
    EXPECT_THAT(message("\"stop\":[]", "\"stop\":[],\"cache_salt\":\"" + salt + "\""),
                HasSubstr("cache_salt: "));
  }
}

}  // namespace
}  // namespace troupe
