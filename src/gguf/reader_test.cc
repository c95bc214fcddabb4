#include "gguf/reader.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <thread>

#include "gguf/split.h"
#include "gguf/writer.h"
#include "testing/temp_folder.h"

namespace troupe {
namespace {

using ::testing::HasSubstr;
using ::testing::SizeIs;

constexpr const char* kTinyModel = TROUPE_SOURCE_DIR "/models/tiny-qwen2moe-q8_0.gguf";

TEST(TinyModel, SaysWhatItIs) {
  const GgufModel model = GgufModel::Open(kTinyModel).value();
  const Metadata& metadata = model.metadata();
  EXPECT_EQ(metadata.entries().size(), 26u);
  EXPECT_EQ(metadata.GetString("general.architecture").value(), "qwen2moe");
  EXPECT_EQ(metadata.GetUint("qwen2moe.block_count").value(), 8u);
  EXPECT_EQ(metadata.GetUint("qwen2moe.expert_count").value(), 32u);
  EXPECT_EQ(metadata.GetUint("qwen2moe.expert_used_count").value(), 4u);
  EXPECT_EQ(metadata.GetFloat("qwen2moe.attention.layer_norm_rms_epsilon").value(), 1e-6f);
  EXPECT_FALSE(metadata.GetBool("tokenizer.ggml.add_eos_token").value());
  const StringArray& tokens = *metadata.GetStrings("tokenizer.ggml.tokens").value();
  EXPECT_EQ(tokens.size(), 4096u);
  EXPECT_EQ(tokens[1], "<s>");
  EXPECT_EQ(metadata.GetFloats("tokenizer.ggml.scores").value().size(), 4096u);
  EXPECT_EQ(metadata.GetInts("tokenizer.ggml.token_type").value()[3], 6);
}

TEST(TinyModel, HasTheTensorsOfEightLayers) {
  const GgufModel model = GgufModel::Open(kTinyModel).value();
  EXPECT_THAT(model.tensors(), SizeIs(3 + 8 * 17));
  const TensorInfo& experts = *model.Require("blk.7.ffn_gate_exps.weight").value();
  EXPECT_EQ(experts.type, TensorType::kQ8_0);
  EXPECT_EQ(DescribeShape(experts), "[128, 64, 32]");
  EXPECT_EQ(experts.bytes, Bytes(128 / 32 * 34 * 64 * 32));
  EXPECT_EQ(model.Find("blk.8.ffn_gate_exps.weight"), nullptr);
  EXPECT_THAT(model.Require("blk.8.ffn_gate_exps.weight").status().message(),
              HasSubstr("tiny-qwen2moe-q8_0.gguf: no tensor 'blk.8.ffn_gate_exps.weight'"));
}

TEST(TinyModel, IsWrittenAgainByteForByte) {
  const GgufModel model = GgufModel::Open(kTinyModel).value();
  const std::vector<TensorSpec> specs(model.tensors().begin(), model.tensors().end());
  const TempFolder folder;
  GgufWriter writer = GgufWriter::Create(folder.PathOf("copy"), model.metadata(), specs).value();
  for (const TensorInfo& tensor : model.tensors()) {
    std::vector<std::byte> bytes(tensor.bytes.count());
    ASSERT_TRUE(model.ReadTensor(tensor, bytes).ok());
    ASSERT_TRUE(writer.Append(tensor.name, bytes).ok());
  }
  ASSERT_TRUE(writer.Finish().ok());
  std::filesystem::copy_file(kTinyModel, folder.PathOf("original"));
  EXPECT_TRUE(folder.Read("copy") == folder.Read("original"));
}

TEST(TinyModel, ThreadsReadDifferentTensorsAtOnce) {
  const GgufModel model = GgufModel::Open(kTinyModel).value();
  const auto read_halves = [&model](const TensorInfo& tensor) {
    std::vector<std::byte> bytes(tensor.bytes.count());
    const std::size_t half = bytes.size() / 2;
    EXPECT_TRUE(model.ReadRange(tensor, half, std::span(bytes).subspan(half)).ok());
    EXPECT_TRUE(model.ReadRange(tensor, 0, std::span(bytes).first(half)).ok());
    return bytes;
  };
  std::vector<std::vector<std::byte>> alone;
  alone.reserve(model.tensors().size());
  for (const TensorInfo& tensor : model.tensors()) alone.push_back(read_halves(tensor));
  std::vector<std::thread> threads;
  threads.reserve(4);
  for (int t = 0; t < 4; ++t) {
    threads.emplace_back([&] {
      for (std::size_t i = 0; i < alone.size(); ++i) {
        EXPECT_TRUE(read_halves(model.tensors()[i]) == alone[i]);
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
}

TEST(TinyModel, ReadingPastATensorIsABug) {
  const GgufModel model = GgufModel::Open(kTinyModel).value();
  const TensorInfo& norm = *model.Require("output_norm.weight").value();
  std::vector<std::byte> bytes(norm.bytes.count());
  EXPECT_DEATH((void)model.ReadRange(norm, 1, bytes), "tensor.bytes");
  EXPECT_DEATH((void)model.ReadTensor(norm, std::span(bytes).first(1)), "out.size");
}

// Three files with two tensors each: part p has "p.x" and "p.y", filled with the number of part
// and tensor.
class SplitModel : public ::testing::Test {
 protected:
  static constexpr std::uint32_t kParts = 3;

  struct PartOptions {
    std::uint32_t number = 1;
    std::uint64_t no = 0;
    std::uint64_t count = kParts;
    std::uint64_t tensors = 2 * kParts;
    std::string prefix_of_names;
  };

  std::string PathOf(std::uint32_t number) const {
    return FormatSplitName({.prefix = folder_.PathOf("m"), .part = number, .count = kParts});
  }

  static PartOptions Right(std::uint32_t number) {
    return {.number = number, .no = number - 1, .prefix_of_names = std::to_string(number)};
  }

  void WritePart(const PartOptions& part) const {
    Metadata metadata;
    if (part.number == 1) metadata.Set("general.architecture", std::string("split"));
    metadata.Set("split.no", static_cast<std::uint16_t>(part.no));
    metadata.Set("split.count", static_cast<std::uint16_t>(part.count));
    metadata.Set("split.tensors.count", static_cast<std::int32_t>(part.tensors));
    const std::vector<TensorSpec> specs = {{part.prefix_of_names + ".x", TensorType::kF32, {2}},
                                           {part.prefix_of_names + ".y", TensorType::kF32, {2}}};
    GgufWriter writer = GgufWriter::Create(PathOf(part.number), metadata, specs).value();
    for (std::size_t i = 0; i < specs.size(); ++i) {
      const std::vector<std::byte> bytes(8, static_cast<std::byte>(10 * part.number + i));
      ASSERT_TRUE(writer.Append(specs[i].name, bytes).ok());
    }
    ASSERT_TRUE(writer.Finish().ok());
  }
  void WriteAll() const {
    for (std::uint32_t number = 1; number <= kParts; ++number) WritePart(Right(number));
  }
  std::string Error(const std::string& path) const {
    return std::string(GgufModel::Open(path).status().message());
  }

  TempFolder folder_;
};

TEST_F(SplitModel, AnyPartOpensAllOfIt) {
  WriteAll();
  for (std::uint32_t given = 1; given <= kParts; ++given) {
    const GgufModel model = GgufModel::Open(PathOf(given)).value();
    EXPECT_EQ(model.path(), PathOf(1));
    EXPECT_THAT(model.files(), SizeIs(kParts));
    EXPECT_EQ(model.metadata().GetString("general.architecture").value(), "split");
    EXPECT_THAT(model.tensors(), SizeIs(2 * kParts));
    for (std::uint32_t part = 1; part <= kParts; ++part) {
      const TensorInfo& y = *model.Require(std::to_string(part) + ".y").value();
      EXPECT_EQ(y.file, part - 1);
      std::vector<std::byte> bytes(8);
      ASSERT_TRUE(model.ReadTensor(y, bytes).ok());
      EXPECT_THAT(bytes, ::testing::Each(static_cast<std::byte>(10 * part + 1)));
    }
    EXPECT_EQ(model.file_bytes().count(), std::filesystem::file_size(PathOf(1)) +
                                              std::filesystem::file_size(PathOf(2)) +
                                              std::filesystem::file_size(PathOf(3)));
  }
}

TEST_F(SplitModel, AMissingPartIsNamed) {
  WriteAll();
  std::filesystem::remove(PathOf(2));
  EXPECT_THAT(Error(PathOf(1)), HasSubstr(PathOf(2)));
  EXPECT_EQ(GgufModel::Open(PathOf(3)).status().code(), Code::kNotFound);
}

TEST_F(SplitModel, APartUnderAnotherNameCannotFindTheRest) {
  WriteAll();
  std::filesystem::rename(PathOf(1), folder_.PathOf("renamed.gguf"));
  EXPECT_THAT(Error(folder_.PathOf("renamed.gguf")),
              HasSubstr("one of 3 parts, a name like NAME-00001-of-00003.gguf expected"));
}

TEST_F(SplitModel, PartsInTheWrongPlaceAreRefused) {
  WriteAll();
  std::filesystem::copy_file(PathOf(3), PathOf(2),
                             std::filesystem::copy_options::overwrite_existing);
  EXPECT_EQ(Error(PathOf(1)), PathOf(2) + ": key 'split.no' is uint16 2, 1 expected");
}

TEST_F(SplitModel, PartsOfAnotherSplitAreRefused) {
  WriteAll();
  PartOptions other = Right(2);
  other.count = 4;
  WritePart(other);
  EXPECT_EQ(Error(PathOf(1)), PathOf(2) + ": key 'split.count' is uint16 4, 3 expected");
  EXPECT_THAT(Error(PathOf(2)), HasSubstr("one of 4 parts, a name like"));
}

TEST_F(SplitModel, TheNumberOfTensorsIsChecked) {
  WriteAll();
  PartOptions first = Right(1);
  first.tensors = 7;
  WritePart(first);
  EXPECT_EQ(Error(PathOf(1)), PathOf(1) + ": key 'split.tensors.count' is int32 7, 6 expected");
}

TEST_F(SplitModel, ATensorInTwoPartsIsRefused) {
  WriteAll();
  PartOptions twin = Right(3);
  twin.prefix_of_names = "1";
  WritePart(twin);
  EXPECT_EQ(Error(PathOf(1)), PathOf(3) + ": tensor '1.x' is in " + PathOf(1) + " already");
}

TEST(GgufModel, AFileThatIsNotThereIsNotFound) {
  EXPECT_EQ(GgufModel::Open("/nonexistent/m.gguf").status().code(), Code::kNotFound);
}

}  // namespace
}  // namespace troupe
