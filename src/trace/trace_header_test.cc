#include "trace/trace_header.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "trace/trace_for_test.h"

namespace troupe {
namespace {

using testing::HasSubstr;

TraceHeader Full() {
  TraceHeader header = TestTraceHeader(true, true);
  header.fingerprint = "00112233445566778899aabbccddeeff";
  header.score_type = ScoreType::kF16;
  header.expert_bytes = {100, 200, 300};
  header.expert_shape = "Q4_K 8x8, Q4_K 8x8, Q4_K 8x8";
  header.dense_bytes = 4096;
  header.origin = "a test, \"quoted\"";
  header.licence = "MIT";
  header.cache = RecordedCache{.slots = 9,
                               .spare = 2,
                               .per_layer = false,
                               .shallow = 1,
                               .policy = "arc",
                               .predictor = "gate"};
  header.sequences = 6;
  return header;
}

TEST(TraceHeaderTest, ComesBackFromItsJson) {
  for (const TraceHeader& header : {Full(), TestTraceHeader(), TestTraceHeader(false)}) {
    const auto read = TraceHeaderFromJson("t", ToJson(header));
    ASSERT_TRUE(read.ok()) << read.status().message();
    EXPECT_EQ(*read, header);
  }
}

TEST(TraceHeaderTest, ANameThatIsNotUtf8DoesNotStopIt) {
  TraceHeader header = TestTraceHeader();
  header.model = "m\xff";
  EXPECT_TRUE(TraceHeaderFromJson("t", ToJson(header)).ok());
}

TEST(TraceHeaderTest, SaysWhatIsWrongWithAShape) {
  const auto error = [](auto change) {
    TraceHeader header = Full();
    change(header);
    const auto read = TraceHeaderFromJson("t.trace", ToJson(header));
    return read.ok() ? std::string("ok") : read.status().message();
  };
  EXPECT_THAT(error([](TraceHeader& h) { h.layers = 3; }), HasSubstr("layer 3 at place 2"));
  EXPECT_THAT(error([](TraceHeader& h) { h.moe_layers = {2, 1, 3}; }), HasSubstr("place 1"));
  EXPECT_THAT(error([](TraceHeader& h) { h.moe_layers.clear(); }), HasSubstr("no layers"));
  EXPECT_THAT(error([](TraceHeader& h) { h.top_k = 13; }), HasSubstr("13 experts a token"));
  EXPECT_THAT(error([](TraceHeader& h) { h.experts = 70000; }), HasSubstr("70000"));
  EXPECT_THAT(error([](TraceHeader& h) { h.expert_bytes.pop_back(); }), HasSubstr("2 sizes"));
  EXPECT_THAT(error([](TraceHeader& h) { h.scores = ScoreKind::kNone; }), "ok");
  EXPECT_THAT(error([](TraceHeader& h) { h.sequences = 1025; }), HasSubstr("sequences"));
  EXPECT_THAT(error([](TraceHeader& h) { h.layers = 0; }), HasSubstr("t.trace"));
}

TEST(TraceHeaderTest, TellsModelsApartByFingerprintOrName) {
  const TraceHeader a = Full();
  TraceHeader b = a;
  b.model = "the same file by another name";
  EXPECT_TRUE(SameModel(a, b).ok());
  b.fingerprint[3] = 'f';
  EXPECT_THAT(SameModel(a, b).message(), HasSubstr("expected 'test'"));
  b = a;
  b.fingerprint.clear();
  EXPECT_TRUE(SameModel(a, b).ok());
  b.model = "other";
  EXPECT_FALSE(SameModel(a, b).ok());
  b = a;
  b.top_k = 2;
  EXPECT_THAT(SameModel(a, b).message(), HasSubstr("takes 2"));
}

TEST(TraceHeaderTest, WhatItIsCalledCannotBreakALineOrCommandATerminal) {
  TraceHeader header = TestTraceHeader();
  header.model = "a\nb\x1b[31m";
  const TraceHeader read = TraceHeaderFromJson("t", ToJson(header)).value();
  EXPECT_EQ(read.model, "a?b?[31m");
}

}  // namespace
}  // namespace troupe
