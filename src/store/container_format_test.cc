#include "store/container_format.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
#include <functional>
#include <span>
#include <string>
#include <vector>

#include "store/container_for_test.h"

namespace troupe {
namespace {

using ::testing::HasSubstr;

// An index followed by experts of zeros: the index does not depend on their bytes.
class ContainerFormatTest : public ::testing::Test {
 protected:
  ContainerFormatTest() {
    size_ = PlaceExperts(index_);
    for (std::vector<ContainerLayer>& layers : index_.precisions) {
      for (ContainerLayer& layer : layers) layer.checksums = {layer.layer, 2, ~std::uint64_t{0}};
    }
    file_ = EncodeContainerIndex(index_);
    file_.resize(size_);
  }

  Result<ContainerIndex> Read() const { return ReadContainerIndex(SpanSource("c.experts", file_)); }

  template <typename T>
  void Put(std::size_t offset, T value) {
    std::memcpy(file_.data() + offset, &value, sizeof(value));
  }
  // As if a writer had meant it: the checksum agrees.
  template <typename T>
  void PutSealed(std::size_t offset, T value) {
    Put(offset, value);
    SealContainerIndex(std::span(file_).first(ContainerDataOffset(index_)));
  }
  void ExpectError(Code code, std::initializer_list<std::string> words) const {
    const Result<ContainerIndex> index = Read();
    ASSERT_FALSE(index.ok());
    EXPECT_EQ(index.status().code(), code);
    EXPECT_THAT(index.status().message(), HasSubstr("c.experts"));
    for (const std::string& word : words) EXPECT_THAT(index.status().message(), HasSubstr(word));
    EXPECT_EQ(index.status().message().find('\n'), std::string::npos);
  }

  static constexpr std::size_t kExpertsAt = 32, kPrecisionsAt = 36, kLayersAt = 40, kZeroAt = 44;
  static constexpr std::size_t kFirstLayerAt = 64, kRecordBytes = 32 + 3 * 8;

  ContainerIndex index_ = TestIndex();
  std::uint64_t size_ = 0;
  std::vector<std::byte> file_;
};

TEST_F(ContainerFormatTest, ReadsBackWhatWasEncoded) {
  const Result<ContainerIndex> index = Read();
  ASSERT_TRUE(index.ok()) << index.status().ToString();
  EXPECT_TRUE(*index == index_);
}

TEST_F(ContainerFormatTest, ExpertsFollowEachOtherOnPagesInTheOrderOfPrecisionsAndLayers) {
  EXPECT_EQ(ContainerDataOffset(index_), 4096u);
  std::uint64_t next = 4096;
  for (const std::vector<ContainerLayer>& layers : index_.precisions) {
    for (const ContainerLayer& layer : layers) {
      for (std::uint32_t e = 0; e < 3; ++e) {
        EXPECT_EQ(layer.OffsetOf(e), next);
        next += (layer.expert_bytes + 4095) / 4096 * 4096;
      }
    }
  }
  EXPECT_EQ(next, size_);
}

TEST_F(ContainerFormatTest, RefusesWhatIsNoContainer) {
  std::memcpy(file_.data(), "GGUF\3\0\0\0", 8);
  ExpectError(Code::kInvalidArgument, {"begins with 'GGUF\\x03", "'TRPEXPRT' expected"});
  file_.clear();
  ExpectError(Code::kInvalidArgument, {"begins with ''"});
}

TEST_F(ContainerFormatTest, TellsOlderFromNewerVersionsAndHowToGetThisOne) {
  Put(8, std::uint32_t{0});
  ExpectError(Code::kFailedPrecondition, {"older version 0", "1 expected", "troupe pack MODEL"});
  Put(8, std::uint32_t{2});
  ExpectError(Code::kFailedPrecondition, {"newer version 2", "1 expected"});
}

TEST_F(ContainerFormatTest, RefusesAFileCutAnywhere) {
  const std::vector<std::byte> whole = file_;
  for (const std::size_t length : {8u, 63u, 64u, 4095u, 4096u, 4097u, 20000u}) {
    file_.assign(whole.begin(), whole.begin() + static_cast<std::ptrdiff_t>(length));
    ExpectError(Code::kDataLoss, {fmt::format("a file of {} bytes", length), "it was cut"});
  }
  file_.assign(whole.begin(), whole.end() - 1);
  ExpectError(Code::kDataLoss, {fmt::format("{} expected: it was cut", size_)});
}

TEST_F(ContainerFormatTest, RefusesAFileThatWasAddedTo) {
  file_.push_back({});
  ExpectError(Code::kDataLoss, {"it was added to"});
}

TEST_F(ContainerFormatTest, NoticesEveryDamagedByteBeforeTheFirstExpert) {
  for (std::size_t at = 0; at < ContainerDataOffset(index_); ++at) {
    file_[at] ^= std::byte{0x10};
    EXPECT_FALSE(Read().ok()) << "byte " << at;
    file_[at] ^= std::byte{0x10};
  }
  file_[kFirstLayerAt + 40] ^= std::byte{1};
  ExpectError(Code::kDataLoss, {"byte 0: the index has checksum", "damaged"});
}

// What a file says that was made to harm, with the checksum it needs.
TEST_F(ContainerFormatTest, ChecksCountsBeforeItReadsByThem) {
  const std::vector<std::byte> whole = file_;
  const auto expect = [&](std::size_t offset, std::uint32_t value, const std::string& word) {
    file_ = whole;
    PutSealed(offset, value);
    ExpectError(Code::kDataLoss, {word});
  };
  expect(kExpertsAt, 0, "byte 32: 0 experts, 1 to 65536 expected");
  expect(kExpertsAt, ~0u, "byte 32: 4294967295 experts");
  expect(kExpertsAt, 65536, "a file of");
  expect(kExpertsAt, 2, "byte 112: layer 4294967295");  // a checksum, read as a record
  expect(kPrecisionsAt, 0, "byte 36: 0 precisions, 1 to 2 expected");
  expect(kPrecisionsAt, 3, "byte 36: 3 precisions");
  expect(kPrecisionsAt, 1, "the last expert ends here");
  expect(kLayersAt, 0, "byte 40: 0 layers");
  expect(kLayersAt, 4097, "byte 40: 4097 layers, 1 to 4096 expected");
  expect(kLayersAt, 4096, "a file of");
  expect(kZeroAt, 1, "byte 44: 1, 0 expected");
}

TEST_F(ContainerFormatTest, RefusesAnIndexThatNoModelNeeds) {
  Put(kExpertsAt, std::uint32_t{65536});
  PutSealed(kLayersAt, std::uint32_t{4096});
  ExpectError(Code::kDataLoss, {"an index of 4.0 GiB, at most 64.0 MiB expected"});
}

TEST_F(ContainerFormatTest, ChecksEveryLayer) {
  const std::vector<std::byte> whole = file_;
  const auto expect = [&](std::size_t offset, auto value, const std::string& word) {
    file_ = whole;
    PutSealed(offset, value);
    ExpectError(Code::kDataLoss, {word});
  };
  constexpr std::size_t kSecond = kFirstLayerAt + kRecordBytes;
  expect(kFirstLayerAt, std::uint32_t{5000}, "byte 64: layer 5000, at most 4095 expected");
  expect(kFirstLayerAt + 4, std::uint32_t{99}, "layer 1: the gate matrices have type 99");
  expect(kFirstLayerAt + 12, std::uint32_t{31}, "layer 1: the down matrices have type 31");
  expect(kSecond, std::uint32_t{1}, "layer 1 after layer 1");
  expect(kFirstLayerAt + 2 * kRecordBytes, std::uint32_t{2},
         "layer 2 in the second precision, 1 expected");
  expect(kFirstLayerAt + 16, std::uint64_t{0}, "byte 80: layer 1: experts of 0 bytes");
  expect(kFirstLayerAt + 16, ~std::uint64_t{0}, "experts of 18446744073709551615 bytes");
  expect(kSecond + 16, size_, "layer 3: experts of");
  expect(kSecond + 24, std::uint64_t{4096}, "layer 3: experts begin at byte 4096");
  expect(kFirstLayerAt + 3 * kRecordBytes + 16, std::uint64_t{4096}, "the last expert ends here");
}

}  // namespace
}  // namespace troupe
