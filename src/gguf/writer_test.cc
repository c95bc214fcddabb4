#include "gguf/writer.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <numeric>

#include "base/rng.h"
#include "gguf/reader.h"
#include "testing/temp_folder.h"
#include "testing/test_seed.h"

namespace troupe {
namespace {

using ::testing::HasSubstr;

std::vector<std::byte> RandomBytes(Rng& rng, Bytes size) {
  std::vector<std::byte> bytes(size.count());
  for (std::byte& byte : bytes) byte = static_cast<std::byte>(rng.Next());
  return bytes;
}

std::vector<std::byte> ReadAll(const GgufModel& model, std::string_view name) {
  const TensorInfo* tensor = model.Require(name).value();
  std::vector<std::byte> bytes(tensor->bytes.count());
  const Status status = model.ReadTensor(*tensor, bytes);
  EXPECT_TRUE(status.ok()) << status.ToString();
  return bytes;
}

class GgufWriterTest : public ::testing::Test {
 protected:
  TempFolder folder_;
  const std::string path_ = folder_.PathOf("m.gguf");
  const std::vector<TensorSpec> tensors_ = {{"a", TensorType::kF32, {3}},
                                            {"b", TensorType::kQ8_0, {32, 5}}};
};

TEST_F(GgufWriterTest, TensorsGivenWholeOrInPiecesComeBack) {
  Rng rng(TestSeed());
  for (const std::uint32_t alignment : {1u, 32u, 4096u, 1u << 20}) {
    Metadata metadata;
    metadata.Set("general.alignment", alignment);
    GgufWriter writer = GgufWriter::Create(path_, metadata, tensors_).value();
    const auto a = RandomBytes(rng, 12_B);
    const auto b = RandomBytes(rng, Bytes(34 * 5));
    ASSERT_TRUE(writer.Append("a", a).ok());
    for (std::size_t done = 0; done < b.size();) {
      const std::size_t n = std::min<std::size_t>(rng.Below(40), b.size() - done);
      ASSERT_TRUE(writer.Append("b", std::span(b).subspan(done, n)).ok());
      done += n;
    }
    ASSERT_TRUE(writer.Finish().ok());

    const GgufModel model = GgufModel::Open(path_).value();
    EXPECT_EQ(model.metadata(), metadata);
    EXPECT_EQ(model.file_bytes(), writer.total_bytes());
    EXPECT_EQ(model.file_bytes().count() % alignment, 0u);  // the last tensor is padded too
    EXPECT_EQ(model.tensor_bytes(), Bytes(12 + 34 * 5));
    EXPECT_EQ(ReadAll(model, "a"), a);
    EXPECT_EQ(ReadAll(model, "b"), b);
  }
}

TEST_F(GgufWriterTest, TheFileAppearsOnlyWhenFinished) {
  {
    GgufWriter writer = GgufWriter::Create(path_, Metadata(), tensors_).value();
    ASSERT_TRUE(writer.Append("a", std::vector<std::byte>(12)).ok());
    const Status early = writer.Finish();
    EXPECT_EQ(early.message(), path_ + ": tensor 'b' was given 0 of its 170 bytes");
  }
  EXPECT_EQ(folder_.Count(), 0u);
}

TEST_F(GgufWriterTest, ACallerWhoLostItsPlaceIsTold) {
  GgufWriter writer = GgufWriter::Create(path_, Metadata(), tensors_).value();
  const std::vector<std::byte> bytes(200);
  EXPECT_EQ(writer.Append("b", std::span(bytes).first(170)).message(),
            path_ + ": tensor 'b' given, the turn is at 'a'");
  EXPECT_EQ(writer.Append("a", std::span(bytes).first(13)).message(),
            path_ + ": tensor 'a' given 13 bytes, 12 declared");
  ASSERT_TRUE(writer.Append("a", std::span(bytes).first(12)).ok());
  ASSERT_TRUE(writer.Append("b", std::span(bytes).first(170)).ok());
  EXPECT_THAT(writer.Append("c", bytes).message(), HasSubstr("after the last one"));
  EXPECT_TRUE(writer.Finish().ok());
}

TEST_F(GgufWriterTest, AnErrorInWhatIsDeclaredNamesTheFile) {
  const std::vector<TensorSpec> twice = {tensors_[0], tensors_[0]};
  EXPECT_EQ(GgufWriter::Create(path_, Metadata(), twice).status().message(),
            path_ + ": tensor 'a': a second one of that name");
}

}  // namespace
}  // namespace troupe
