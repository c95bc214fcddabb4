#include "store/gguf_store.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "testing/temp_folder.h"

namespace troupe {
namespace {

using ::testing::ElementsAre;

class GgufStoreTest : public ::testing::Test {
 protected:
  Result<GgufStore> Open(GgufStore::Assemble assemble) const {
    return GgufStore::Open(paths_,
                           {{},
                            {{.file = 0, .offset = 100, .bytes = 10, .stride = 10},
                             {.file = 1, .offset = 64, .bytes = 10, .stride = 10},
                             {.file = 0, .offset = 500, .bytes = 7, .stride = 7}}},
                           std::move(assemble));
  }

  TempFolder folder_;
  const std::vector<std::string> paths_ = {folder_.Write("a.gguf", std::string(1000, 'a')),
                                           folder_.Write("b.gguf", std::string(1000, 'b'))};
};

TEST_F(GgufStoreTest, LocatesTheThreePartsOfAnExpertInTheirFiles) {
  const GgufStore store = Open({}).value();
  EXPECT_FALSE(store.direct());
  ASSERT_EQ(store.files().size(), 2u);
  EXPECT_EQ(store.files()[1].path(), paths_[1]);
  std::vector<Extent> extents;
  store.Locate({.layer = 1, .expert = 0}, extents);
  store.Locate({.layer = 1, .expert = 5}, extents);  // appended
  EXPECT_THAT(extents, ElementsAre(Extent{0, 100, 10}, Extent{1, 64, 10}, Extent{0, 500, 7},
                                   Extent{0, 150, 10}, Extent{1, 114, 10}, Extent{0, 535, 7}));
}

TEST_F(GgufStoreTest, PutsPartsTogetherAsItWasTold) {
  ExpertId told;
  GgufStore store = Open([&](ExpertId id, std::span<const std::span<const std::byte>> parts,
                             std::span<std::byte> slot) {
                      told = id;
                      slot[0] = parts[2][0];
                      return id.expert == 2 ? OkStatus() : Error(Code::kDataLoss, "damaged");
                    }).value();
  const std::vector<std::byte> read = {std::byte{1}, std::byte{2}, std::byte{3}};
  const std::span<const std::byte> bytes = read;
  const std::vector<std::span<const std::byte>> parts = {bytes.first(1), bytes.subspan(1, 1),
                                                         bytes.last(1)};
  std::vector<std::byte> slot(1);
  EXPECT_TRUE(store.Finish({.layer = 1, .expert = 2}, parts, slot).ok());
  EXPECT_EQ(told, (ExpertId{.layer = 1, .expert = 2}));
  EXPECT_EQ(slot[0], std::byte{3});
  EXPECT_EQ(store.Finish({.layer = 1, .expert = 3}, parts, slot).code(), Code::kDataLoss);
}

TEST_F(GgufStoreTest, NamesAFileThatIsNotThere) {
  const std::string missing = folder_.PathOf("none.gguf");
  const Status status = GgufStore::Open({&missing, 1}, {}, {}).status();
  EXPECT_EQ(status.code(), Code::kNotFound);
  EXPECT_THAT(status.message(), ::testing::HasSubstr(missing));
}

TEST_F(GgufStoreTest, AskingForALayerWithoutExpertsIsABug) {
  const GgufStore store = Open({}).value();
  std::vector<Extent> extents;
  EXPECT_DEATH(store.Locate({.layer = 0, .expert = 0}, extents), "layers_");
}

}  // namespace
}  // namespace troupe
