#include "server/repetition_fields.h"

#include <fmt/core.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "server/request_body.h"
#include "server/sampling_fields.h"

namespace troupe {
namespace {

using testing::ElementsAre;
using testing::StartsWith;

Result<Sampling> RepetitionIn(const std::string& fields) {
  return ReadBody<Sampling>("{" + fields + "}", [](const JsonValue& json) {
    Request request;
    ReadGeneration(json, request);
    return request.sampling;
  });
}

TEST(RepetitionFields, LlamaServersFieldsMeanTheSameHere) {
  const Sampling sampling =
      RepetitionIn(R"("dry_multiplier":0.8,"dry_base":2,"dry_allowed_length":3,)"
                   R"("dry_penalty_last_n":100,"dry_sequence_breakers":["\n",":"],)"
                   R"("xtc_probability":0.5,"xtc_threshold":0.2)")
          .value();
  EXPECT_EQ(sampling.dry.multiplier, 0.8);
  EXPECT_EQ(sampling.dry.base, 2);
  EXPECT_EQ(sampling.dry.allowed_length, 3u);
  EXPECT_EQ(sampling.dry.window, 100u);
  EXPECT_THAT(sampling.dry.breakers, ElementsAre("\n", ":"));
  EXPECT_EQ(sampling.xtc.probability, 0.5);
  EXPECT_EQ(sampling.xtc.threshold, 0.2);
  EXPECT_EQ(RepetitionIn(R"("dry_base":1.75,"xtc_threshold":0.1)").value(), Sampling());
}

TEST(RepetitionFields, TheWholeTextIsLookedAtForMinusOneAndNothingForNone) {
  const auto dry = [](int last) {
    return RepetitionIn(fmt::format(R"("dry_multiplier":1,"dry_penalty_last_n":{})", last))->dry;
  };
  EXPECT_EQ(dry(-1).window, 0u);  // of DryOptions: all
  EXPECT_EQ(dry(-1).multiplier, 1);
  EXPECT_EQ(dry(0).multiplier, 0);
  EXPECT_EQ(dry(7).window, 7u);
}

TEST(RepetitionFields, StepsThatSamplersLeavesOutAreOff) {
  const std::string on = R"("dry_multiplier":1,"xtc_probability":1,"samplers":)";
  const Sampling both =
      RepetitionIn(on + R"(["penalties","dry","top_k","xtc","temperature"])").value();
  EXPECT_EQ(both.dry.multiplier, 1);
  EXPECT_EQ(both.xtc.probability, 1);
  const Sampling neither = RepetitionIn(on + "\"kt\"").value();
  EXPECT_EQ(neither.dry.multiplier, 0);
  EXPECT_EQ(neither.xtc.probability, 0);
  EXPECT_THAT(RepetitionIn(on + "\"xk\"").status().message(), StartsWith("request: samplers: "));
}

TEST(RepetitionFields, WhatIsOutOfItsRangeIsRefusedByItsField) {
  for (const auto& [field, place] :
       {std::pair(R"("dry_multiplier":-1)", "dry_multiplier: "),
        {R"("dry_multiplier":"much")", "dry_multiplier: "},
        {R"("dry_base":0.5)", "dry_base: "},
        {R"("dry_allowed_length":0)", "dry_allowed_length: "},
        {R"("dry_penalty_last_n":-2)", "dry_penalty_last_n: "},
        {R"("dry_sequence_breakers":[])", "dry_sequence_breakers: "},
        {R"("dry_sequence_breakers":"\n")", "dry_sequence_breakers: "},
        {R"("dry_sequence_breakers":["a",""])", "dry_sequence_breakers[1]: "},
        {R"("dry_sequence_breakers":[7])", "dry_sequence_breakers[0]: "},
        {R"("xtc_probability":1.5)", "xtc_probability: "},
        {R"("xtc_threshold":-0.1)", "xtc_threshold: "}}) {
    EXPECT_THAT(RepetitionIn(field).status().message(),
                StartsWith(std::string("request: ") + place))
        << field;
  }
}

}  // namespace
}  // namespace troupe
