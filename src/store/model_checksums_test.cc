#include "store/model_checksums.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "gguf/writer.h"
#include "testing/temp_folder.h"

namespace troupe {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

class ModelChecksumsTest : public ::testing::Test {
 protected:
  ModelChecksumsTest() {
    Metadata metadata;
    metadata.Set("general.name", std::string("small"));
    const std::vector<TensorSpec> specs = {{"a.weight", TensorType::kF32, {32, 3}},
                                           {"exps.weight", TensorType::kF32, {32, 2, 3}}};
    GgufWriter writer = GgufWriter::Create(path_, metadata, specs).value();
    for (const TensorSpec& spec : specs) {
      const std::vector<std::byte> bytes(spec.ElementCount() * 4, std::byte{7});
      EXPECT_TRUE(writer.Append(spec.name, bytes).ok());
    }
    EXPECT_TRUE(writer.Finish().ok());
  }

  ModelChecksums Sums(std::size_t threads = 1) const {
    return SumModel(GgufModel::Open(path_).value(), threads).value();
  }
  std::vector<std::string> DamagedBy(std::uint64_t offset) const {
    const ModelChecksums before = Sums();
    const std::string whole = folder_.Read("m.gguf");
    std::string changed = whole;
    changed[offset] = static_cast<char>(changed[offset] ^ 1);
    folder_.Write("m.gguf", changed);
    std::vector<std::string> damaged = DamagedParts(before, Sums());
    folder_.Write("m.gguf", whole);
    return damaged;
  }

  TempFolder folder_;
  const std::string path_ = folder_.PathOf("m.gguf");
};

TEST_F(ModelChecksumsTest, AreTheSameForAnyNumberOfThreadsAndReadBack) {
  EXPECT_EQ(Sums(1), Sums(3));
  EXPECT_EQ(ParseChecksums("x", ChecksumsText(Sums())).value(), Sums());
  EXPECT_THAT(DamagedParts(Sums(), Sums()), IsEmpty());
}

TEST_F(ModelChecksumsTest, NameTheTensorAndTheExpertOfAnyChangedByte) {
  const GgufModel model = GgufModel::Open(path_).value();
  const TensorInfo& plain = *model.Find("a.weight");
  const TensorInfo& experts = *model.Find("exps.weight");
  for (std::uint64_t at = 0; at < plain.bytes.count(); at += 5) {
    EXPECT_THAT(DamagedBy(plain.offset + at), ElementsAre("tensor 'a.weight'"));
  }
  for (std::uint64_t at = 0; at < experts.bytes.count(); at += 5) {
    const std::uint64_t expert = at / (experts.bytes.count() / 3);
    EXPECT_THAT(DamagedBy(experts.offset + at),
                ElementsAre("tensor 'exps.weight': expert " + std::to_string(expert) + " of 3"));
  }
}

TEST_F(ModelChecksumsTest, SeeTheHeaderAndWhatLiesBetween) {
  const std::string text = folder_.Read("m.gguf");
  EXPECT_THAT(DamagedBy(text.find("small")),
              ElementsAre("the header of file 1, or what lies between its tensors"));
}

TEST_F(ModelChecksumsTest, TellTensorsThatAreGoneOrNew) {
  ModelChecksums before = Sums();
  before.tensors[0].name = "old.weight";
  EXPECT_THAT(DamagedParts(before, Sums()), ElementsAre("tensor 'a.weight', which was not there",
                                                        "tensor 'old.weight', which is gone"));
}

TEST_F(ModelChecksumsTest, OfOthersAreRefused) {
  for (const char* text :
       {"", "{}", R"({"format":"other","version":1,"between":[],"tensors":[]})",
        R"({"format":"troupe checksums","version":2,"between":[],"tensors":[]})",
        R"({"format":"troupe checksums","version":1,"between":["x"],"tensors":[]})"}) {
    EXPECT_FALSE(ParseChecksums("x", text).ok()) << text;
  }
}

}  // namespace
}  // namespace troupe
