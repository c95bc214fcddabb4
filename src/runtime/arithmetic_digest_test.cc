#include "runtime/arithmetic_digest.h"

#include <gtest/gtest.h>

namespace troupe {
namespace {

constexpr const char* kDigestModel = TROUPE_SOURCE_DIR "/models/tiny-qwen2moe-q8_0.gguf";

std::unique_ptr<Engine> DigestEngine(std::optional<std::uint32_t> slots, std::uint32_t threads,
                                     const char* path = kDigestModel) {
  EngineOptions options{.threads = threads, .context = 64};
  options.offload.slots = slots;
  return Engine::Open(path, options).value();
}

TEST(ArithmeticDigest, IsTheSameWhateverIsInMemoryAndWhateverThreadsThereAre) {
  const std::uint64_t all = ArithmeticDigest(*DigestEngine(std::nullopt, 1)).value();
  const auto some = DigestEngine(8, 2);
  EXPECT_EQ(ArithmeticDigest(*some).value(), all);
  EXPECT_EQ(ArithmeticDigest(*some).value(), all);
  EXPECT_EQ(some->held().count(), 0u);  // nothing stays behind
}

TEST(ArithmeticDigest, AnotherModelHasAnother) {
  const char* const other = TROUPE_SOURCE_DIR "/models/small-qwen2moe-q8_0.gguf";
  EXPECT_NE(ArithmeticDigest(*DigestEngine(8, 1)).value(),
            ArithmeticDigest(*DigestEngine(8, 1, other)).value());
}

}  // namespace
}  // namespace troupe
