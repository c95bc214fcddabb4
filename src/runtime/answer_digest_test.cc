#include "runtime/answer_digest.h"

#include <gtest/gtest.h>

#include "runtime/session.h"

namespace troupe {
namespace {

std::unique_ptr<Engine> AnswerEngine(EngineOptions options) {
  options.context = 64;
  return Engine::Open(TROUPE_SOURCE_DIR "/models/tiny-qwen2moe-q8_0.gguf", options).value();
}

EngineOptions WithSlots(std::uint32_t slots, std::uint32_t threads) {
  EngineOptions options{.threads = threads};
  options.offload.slots = slots;
  return options;
}

TEST(AnswerDigest, IsTheSameWhateverIsInMemoryAndLeavesTheSequenceFree) {
  const auto whole = AnswerEngine({.threads = 1});
  const std::uint64_t all = AnswerDigest(*whole).value();
  EXPECT_EQ(AnswerDigest(*AnswerEngine(WithSlots(8, 2))).value(), all);
  EXPECT_EQ(AnswerDigest(*whole).value(), all);
  EXPECT_TRUE(Session::Create(*whole).ok());
}

TEST(AnswerDigest, SeesOtherTypesInTheKvCache) {
  EXPECT_NE(AnswerDigest(*AnswerEngine({.kv_type = KvType::kQ8_0})).value(),
            AnswerDigest(*AnswerEngine({})).value());
}

}  // namespace
}  // namespace troupe
