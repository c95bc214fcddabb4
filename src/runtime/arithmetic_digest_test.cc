#include "runtime/arithmetic_digest.h"

#include <gtest/gtest.h>

#include <cstring>
#include <vector>

#include "forge/synth.h"
#include "gguf/reader.h"
#include "gguf/writer.h"
#include "testing/temp_folder.h"

namespace troupe {
namespace {

constexpr const char* kDigestModel = TROUPE_SOURCE_DIR "/models/tiny-qwen2moe-q8_0.gguf";

std::unique_ptr<Engine> DigestEngine(std::optional<std::uint32_t> slots, std::uint32_t threads,
                                     const std::string& path = kDigestModel) {
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

// Copies a model with one of its tensors of floats doubled.
void CopyDoubling(const std::string& from, std::string_view name, const std::string& to) {
  const GgufModel model = GgufModel::Open(from).value();
  const std::vector<TensorSpec> specs(model.tensors().begin(), model.tensors().end());
  GgufWriter writer = GgufWriter::Create(to, model.metadata(), specs).value();
  for (const TensorInfo& tensor : model.tensors()) {
    std::vector<std::byte> bytes(tensor.bytes.count());
    ASSERT_TRUE(model.ReadTensor(tensor, bytes).ok());
    for (std::size_t at = 0; tensor.name == name && at < bytes.size(); at += sizeof(float)) {
      float value;
      std::memcpy(&value, &bytes[at], sizeof value);
      value *= 2;
      std::memcpy(&bytes[at], &value, sizeof value);
    }
    ASSERT_TRUE(writer.Append(tensor.name, bytes).ok());
  }
  ASSERT_TRUE(writer.Finish().ok());
}

TEST(ArithmeticDigest, CoversTheBiasesOfExpertsWhereverTheseLie) {
  const TempFolder folder;
  const std::string path = folder.PathOf("m.gguf");
  ASSERT_TRUE(Synthesize(*FindShape("tiny-gpt-oss"), SynthOptions(), path).ok());
  const std::uint64_t all = ArithmeticDigest(*DigestEngine(std::nullopt, 1, path)).value();
  EXPECT_EQ(ArithmeticDigest(*DigestEngine(8, 2, path)).value(), all);
  for (const char* name :
       {"blk.0.ffn_gate_exps.bias", "blk.0.ffn_up_exps.bias", "blk.0.ffn_down_exps.bias"}) {
    CopyDoubling(path, name, folder.PathOf("other.gguf"));
    EXPECT_NE(ArithmeticDigest(*DigestEngine(8, 2, folder.PathOf("other.gguf"))).value(), all)
        << name;
  }
}

}  // namespace
}  // namespace troupe
