#include "store/verify_container.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

#include "io/file.h"
#include "store/container_for_test.h"
#include "testing/temp_folder.h"

namespace troupe {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

class VerifyContainerTest : public ::testing::Test {
 protected:
  VerifyContainerTest() { WriteTestContainer(path_); }

  ContainerVerdict Verify() const { return VerifyContainer(path_, kTestModel, 2).value(); }
  void Flip(std::uint64_t offset) const {
    std::string text = folder_.Read("m.experts");
    text[offset] = static_cast<char>(text[offset] ^ 1);
    folder_.Write("m.experts", text);
  }

  TempFolder folder_;
  const std::string path_ = folder_.PathOf("m.experts");
};

TEST_F(VerifyContainerTest, ComparesEveryExpertOfBothCopies) {
  const ContainerVerdict verdict = Verify();
  EXPECT_EQ(verdict.experts, 12u);
  EXPECT_TRUE(verdict.of_model);
  EXPECT_THAT(verdict.damaged, IsEmpty());
}

TEST_F(VerifyContainerTest, NamesTheExpertOfAChangedByteAlsoInItsPadding) {
  const ContainerIndex index = ReadContainerIndex(ReadFile::Open(path_).value()).value();
  Flip(index.precisions[0][1].OffsetOf(2) + 100);
  EXPECT_THAT(Verify().damaged, ElementsAre("layer 3, expert 2"));
  Flip(index.precisions[1][0].OffsetOf(1) + 200);  // beyond its 100 bytes
  EXPECT_THAT(Verify().damaged, ElementsAre("layer 3, expert 2", "layer 1, expert 1 (low copy)"));
}

TEST_F(VerifyContainerTest, SaysIfItIsAnotherModels) {
  EXPECT_FALSE(VerifyContainer(path_, {{1, 2}}, 1)->of_model);
}

TEST_F(VerifyContainerTest, AnIndexThatIsDamagedIsAnError) {
  Flip(70);
  EXPECT_FALSE(VerifyContainer(path_, kTestModel, 1).ok());
}

}  // namespace
}  // namespace troupe
