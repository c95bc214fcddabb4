#include "store/container_writer.h"

#include <gtest/gtest.h>

#include <cstring>
#include <filesystem>
#include <string>
#include <vector>

#include "io/file.h"
#include "store/container_for_test.h"
#include "testing/temp_folder.h"

namespace troupe {
namespace {

TEST(ContainerWriter, PutsEveryExpertWhereTheIndexSaysWithItsChecksumAndZerosAfterIt) {
  const TempFolder folder;
  const std::string path = folder.PathOf("m.experts");
  WriteTestContainer(path);
  const ReadFile file = ReadFile::Open(path).value();
  const Result<ContainerIndex> index = ReadContainerIndex(file);
  ASSERT_TRUE(index.ok()) << index.status().ToString();
  EXPECT_TRUE(index->model == kTestModel);
  for (std::size_t p = 0; p < 2; ++p) {
    for (const ContainerLayer& layer : index->precisions[p]) {
      for (std::uint32_t e = 0; e < index->experts; ++e) {
        std::vector<std::byte> expected = TestExpert(p, layer.layer, e, layer.expert_bytes);
        EXPECT_EQ(layer.checksums[e], ContainerChecksum(expected));
        expected.resize(layer.Stride());
        std::vector<std::byte> found(layer.Stride());
        ASSERT_TRUE(file.ReadAt(layer.OffsetOf(e), found).ok());
        EXPECT_TRUE(found == expected) << "layer " << layer.layer << ", expert " << e;
      }
    }
  }
}

TEST(ContainerWriter, KnowsTheSizeFromTheBeginning) {
  const TempFolder folder;
  const std::string path = folder.PathOf("m.experts");
  const Bytes promised = ContainerWriter::Create(path, TestIndex())->total_bytes();
  WriteTestContainer(path);
  EXPECT_EQ(std::filesystem::file_size(path), promised.count());
}

TEST(ContainerWriter, LeavesTheOldFileUntilTheNewOneIsWhole) {
  const TempFolder folder;
  const std::string path = folder.Write("m.experts", "old");
  {
    ContainerWriter writer = ContainerWriter::Create(path, TestIndex()).value();
    ASSERT_TRUE(writer.Append(std::vector<std::byte>(10000)).ok());
  }
  EXPECT_EQ(folder.Read("m.experts"), "old");
  EXPECT_EQ(folder.Count(), 1u);
  WriteTestContainer(path);
  EXPECT_TRUE(ReadContainerIndex(ReadFile::Open(path).value()).ok());
  EXPECT_EQ(folder.Count(), 1u);
}

TEST(ContainerWriterDeathTest, ACallerThatLostItsPlaceIsStopped) {
  const TempFolder folder;
  ContainerWriter writer = ContainerWriter::Create(folder.PathOf("m.experts"), TestIndex()).value();
  EXPECT_DEATH((void)writer.Append(std::vector<std::byte>(8192)), "expert_bytes");
  EXPECT_DEATH((void)writer.Finish(), "precision_");
}

}  // namespace
}  // namespace troupe
