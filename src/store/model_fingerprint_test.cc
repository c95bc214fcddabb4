#include "store/model_fingerprint.h"

#include <gtest/gtest.h>

#include <filesystem>
#include <functional>
#include <string>
#include <vector>

#include "gguf/split.h"
#include "gguf/writer.h"
#include "testing/temp_folder.h"

namespace troupe {
namespace {

// What a small model file is made of; a test changes one thing.
struct Made {
  Metadata metadata;
  std::vector<TensorSpec> specs;
  std::vector<std::vector<std::byte>> bytes;
};

Made Model() {
  Made made;
  made.metadata.Set("general.name", std::string("small"));
  made.metadata.Set("model.layers", std::uint32_t{2});
  made.specs = {{"a.weight", TensorType::kF32, {32, 4}},
                {"b.weight", TensorType::kF32, {64, 1000}}};
  made.bytes = {std::vector<std::byte>(32 * 4 * 4, std::byte{1}),
                std::vector<std::byte>(64 * 1000 * 4, std::byte{2})};
  return made;
}

void Write(const std::string& path, const Made& made) {
  GgufWriter writer = GgufWriter::Create(path, made.metadata, made.specs).value();
  for (std::size_t i = 0; i < made.specs.size(); ++i) {
    ASSERT_TRUE(writer.Append(made.specs[i].name, made.bytes[i]).ok());
  }
  ASSERT_TRUE(writer.Finish().ok());
}

ModelFingerprint FingerprintAt(const std::string& path) {
  return FingerprintModel(GgufModel::Open(path).value()).value();
}

class ModelFingerprintTest : public ::testing::Test {
 protected:
  ModelFingerprint Of(const Made& made) const {
    Write(folder_.PathOf("m.gguf"), made);
    return FingerprintAt(folder_.PathOf("m.gguf"));
  }
  // Of the model after a change.
  ModelFingerprint With(const std::function<void(Made&)>& change) const {
    Made made = Model();
    change(made);
    return Of(made);
  }

  TempFolder folder_;
  const ModelFingerprint original_ = Of(Model());
};

TEST_F(ModelFingerprintTest, DoesNotDependOnTheFilesNameOrAge) {
  std::filesystem::create_directory(folder_.PathOf("elsewhere"));
  Write(folder_.PathOf("elsewhere/other.gguf"), Model());
  EXPECT_EQ(FingerprintAt(folder_.PathOf("elsewhere/other.gguf")), original_);
}

TEST_F(ModelFingerprintTest, ChangesWithAnyMetadata) {
  const auto set = [](const char* key, Value value) {
    return [=](Made& m) { m.metadata.Set(key, value); };
  };
  EXPECT_NE(With(set("general.name", std::string("smell"))), original_);
  EXPECT_NE(With(set("model.layers", std::uint32_t{3})), original_);
  EXPECT_NE(With(set("model.layers", std::int32_t{2})), original_);
  EXPECT_NE(With(set("one.more", true)), original_);
}

TEST_F(ModelFingerprintTest, ChangesWithNamesTypesAndShapes) {
  EXPECT_NE(With([](Made& m) { m.specs[0].name = "c.weight"; }), original_);
  EXPECT_NE(With([](Made& m) { m.specs[0].dims = {4, 32, 1, 1}; }), original_);
  EXPECT_NE(With([](Made& m) {
              m.specs[0].type = TensorType::kF16;
              m.specs[0].dims[1] = 8;
            }),
            original_);
}

TEST_F(ModelFingerprintTest, ChangesWithTheFirstMiddleAndLastBytesOfEveryTensor) {
  for (const std::size_t tensor : {0u, 1u}) {
    const std::size_t size = Model().bytes[tensor].size();
    for (const std::size_t at : {std::size_t{0}, size / 2, size - 1}) {
      EXPECT_NE(With([&](Made& m) { m.bytes[tensor][at] = std::byte{9}; }), original_)
          << tensor << ", byte " << at;
    }
  }
}

// The price of reading little, stated as a test.
TEST_F(ModelFingerprintTest, DoesNotSeeWhatLiesBetweenSamples) {
  EXPECT_EQ(With([](Made& m) { m.bytes[1][10000] = std::byte{9}; }), original_);
}

TEST_F(ModelFingerprintTest, ChangesWithTheFirst64BytesOfEveryMatrixOfAStack) {
  constexpr std::size_t kMatrix = std::size_t{64} * 32 * sizeof(float), kMatrices = 8;
  const auto with = [&](std::size_t at, std::byte byte) {
    return With([&](Made& m) {
      m.specs[1] = {"b_exps.weight", TensorType::kF32, {64, 32, kMatrices}};
      m.bytes[1].assign(kMatrices * kMatrix, std::byte{2});
      m.bytes[1][at] = byte;
    });
  };
  const ModelFingerprint as_it_was = with(0, std::byte{2});
  for (std::size_t matrix = 0; matrix < kMatrices; ++matrix) {
    EXPECT_NE(with(matrix * kMatrix, std::byte{9}), as_it_was) << matrix;
    EXPECT_NE(with(matrix * kMatrix + 63, std::byte{9}), as_it_was) << matrix;
  }
  EXPECT_EQ(with(2 * kMatrix + 64, std::byte{9}), as_it_was);
}

TEST_F(ModelFingerprintTest, IsTheSameForAModelInTwoParts) {
  const Made made = Model();
  for (std::size_t i = 0; i < 2; ++i) {
    Made part;
    if (i == 0) part.metadata = made.metadata;
    part.metadata.Set("split.no", static_cast<std::uint16_t>(i));
    part.metadata.Set("split.count", std::uint16_t{2});
    part.metadata.Set("split.tensors.count", std::int32_t{2});
    part.specs = {made.specs[i]};
    part.bytes = {made.bytes[i]};
    Write(FormatSplitName({folder_.PathOf("s"), static_cast<std::uint32_t>(i + 1), 2}), part);
  }
  EXPECT_EQ(FingerprintAt(folder_.PathOf("s-00002-of-00002.gguf")), original_);
}

TEST_F(ModelFingerprintTest, IsShownAs32HexDigits) {
  EXPECT_EQ(ToString(ModelFingerprint{{1, 0xabc}}), "00000000000000010000000000000abc");
}

}  // namespace
}  // namespace troupe
