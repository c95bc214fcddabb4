#include "fetch/part_file.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <string>
#include <string_view>

#include "testing/temp_folder.h"

namespace troupe {
namespace {

using ::testing::HasSubstr;

constexpr const char* kAbcSum = "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad";

std::span<const std::byte> PartBytes(std::string_view text) {
  return std::as_bytes(std::span(text));
}

class PartFileTest : public ::testing::Test {
 protected:
  bool IsThere(const std::string& name) const {
    return std::filesystem::exists(folder_.PathOf(name));
  }

  TempFolder folder_;
  const std::string path_ = folder_.PathOf("m.gguf");
  const PulledFile abc_ = {"m.gguf", 3, kAbcSum};
};

TEST_F(PartFileTest, GetsItsNameOnceItIsWholeAndChecked) {
  PartFile part = *PartFile::Open(path_, abc_);
  ASSERT_TRUE(part.Append(PartBytes("ab")).ok());
  EXPECT_FALSE(part.Finish().ok());
  EXPECT_FALSE(IsThere("m.gguf"));
  ASSERT_TRUE(part.Append(PartBytes("c")).ok());
  ASSERT_TRUE(part.Finish().ok());
  EXPECT_EQ(folder_.Read("m.gguf"), "abc");
  EXPECT_FALSE(IsThere("m.gguf.part"));
  EXPECT_FALSE(IsThere("m.gguf.part.json"));
}

TEST_F(PartFileTest, IsGoneOnWithAndHashesWhatLiesThere) {
  {
    PartFile part = *PartFile::Open(path_, abc_);
    ASSERT_TRUE(part.SetEtag("\"e\"").ok());
    ASSERT_TRUE(part.Append(PartBytes("ab")).ok());
  }
  PartFile part = *PartFile::Open(path_, abc_);
  EXPECT_EQ(part.size(), 2u);
  EXPECT_EQ(part.etag(), "\"e\"");
  ASSERT_TRUE(part.ReadAgain({}).ok());
  ASSERT_TRUE(part.Append(PartBytes("c")).ok());
  EXPECT_TRUE(part.Finish().ok());
}

TEST_F(PartFileTest, OfAnotherFileIsBegunAnew) {
  {
    PartFile part = *PartFile::Open(path_, abc_);
    ASSERT_TRUE(part.Append(PartBytes("ab")).ok());
  }
  EXPECT_EQ(PartFile::Open(path_, {"m.gguf", 3, std::string(64, '0')})->size(), 0u);
  folder_.Write("m.gguf.part", "abcd");  // more than it is to have
  EXPECT_EQ(PartFile::Open(path_, abc_)->size(), 0u);
}

TEST_F(PartFileTest, WithoutAChecksumIsGoneOnWithOnlyIfAnEtagIsKnown) {
  const PulledFile unknown = {"m.gguf", 3, ""};
  {
    PartFile part = *PartFile::Open(path_, unknown);
    ASSERT_TRUE(part.Append(PartBytes("ab")).ok());
  }
  {
    PartFile part = *PartFile::Open(path_, unknown);
    EXPECT_EQ(part.size(), 0u);
    ASSERT_TRUE(part.SetEtag("\"e\"").ok());
    ASSERT_TRUE(part.Append(PartBytes("ab")).ok());
  }
  EXPECT_EQ(PartFile::Open(path_, unknown)->size(), 2u);
}

TEST_F(PartFileTest, ThatHashesToSomethingElseIsRemoved) {
  PartFile part = *PartFile::Open(path_, abc_);
  ASSERT_TRUE(part.Append(PartBytes("abd")).ok());
  const Status status = part.Finish();
  EXPECT_EQ(status.code(), Code::kDataLoss);
  EXPECT_THAT(status.message(), HasSubstr(std::string("expected ") + kAbcSum));
  EXPECT_FALSE(IsThere("m.gguf"));
  EXPECT_FALSE(IsThere("m.gguf.part"));
}

TEST_F(PartFileTest, TakesNoByteMoreThanWasListed) {
  PartFile part = *PartFile::Open(path_, abc_);
  EXPECT_EQ(part.Append(PartBytes("abcd")).code(), Code::kDataLoss);
}

TEST_F(PartFileTest, BelongsToOneAtATime) {
  const Result<PartFile> first = PartFile::Open(path_, abc_);
  ASSERT_TRUE(first.ok());
  const Result<PartFile> second = PartFile::Open(path_, abc_);
  EXPECT_THAT(second.status().message(), HasSubstr("another `troupe pull` is getting it"));
  EXPECT_FALSE(RemovePartFile(path_).ok());
}

TEST_F(PartFileTest, IsRemovedWithWhatIsKnownOfIt) {
  EXPECT_TRUE(RemovePartFile(path_).ok());
  { ASSERT_TRUE(PartFile::Open(path_, abc_)->Append(PartBytes("ab")).ok()); }
  EXPECT_EQ(SizeOfPartFile(path_), 2u);
  EXPECT_TRUE(RemovePartFile(path_).ok());
  EXPECT_FALSE(IsThere("m.gguf.part"));
  EXPECT_FALSE(IsThere("m.gguf.part.json"));
}

}  // namespace
}  // namespace troupe
