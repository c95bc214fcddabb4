#include "runtime/prefix_file.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>

#include <algorithm>
#include <memory>
#include <numeric>
#include <vector>

#include "base/rng.h"
#include "testing/temp_folder.h"
#include "testing/test_seed.h"

namespace troupe {
namespace {

using testing::HasSubstr;

constexpr std::size_t kKeptPage = Attention::kBlock;
constexpr ModelFingerprint kKeptModel{{1, 2}};

using StoredText = std::vector<std::int32_t>;

StoredText Counted(std::size_t count, std::int32_t first) {
  StoredText tokens(count);
  std::iota(tokens.begin(), tokens.end(), first);
  return tokens;
}

class PrefixFileTest : public testing::Test {
 protected:
  struct Kept {
    explicit Kept(std::size_t pages, KvType type = KvType::kF16) {
      ModelConfig config;
      config.layers = 2;
      config.attention = {.heads = 1, .kv_heads = 1, .key_dim = 32, .value_dim = 32};
      const auto context = static_cast<std::uint32_t>(pages * kKeptPage);
      pool = KvPool::Create(config, {0, 2}, {.type = type, .context = context}).value();
      cache = std::make_unique<PrefixCache>(*pool);
    }
    // Each page of the text holds its last token's number in all bytes.
    void Leave(const StoredText& tokens) {
      KvSequence sequence = pool->NewSequence();
      cache->Extend(sequence, tokens);
      ASSERT_TRUE(sequence.Reserve(tokens.size()).ok());
      for (std::size_t at = sequence.length(); at < tokens.size();) {
        const std::size_t part = std::min(kKeptPage - at % kKeptPage, tokens.size() - at);
        const KvPage page = sequence.Page(at / kKeptPage);
        std::ranges::fill(pool->BytesOf(page), static_cast<std::byte>(tokens[at + part - 1]));
        sequence.Advance(part);
        at += part;
      }
      cache->Keep(sequence, tokens, PrefixCache::Keeping::kAll);
    }
    std::size_t Found(const StoredText& tokens) {
      KvSequence sequence = pool->NewSequence();
      return cache->ExtendByTaking(sequence, tokens);
    }

    KeptTexts texts() { return {.prefixes = *cache, .states = states, .pool = *pool}; }

    std::unique_ptr<KvPool> pool;
    std::unique_ptr<PrefixCache> cache;
    KeptStates states;
  };

  Status Write(Kept& kept) { return WritePrefixes(path_, kKeptModel, kept.texts()); }
  Result<PrefixFileReport> Read(Kept& kept, const ModelFingerprint& model = kKeptModel) {
    return ReadPrefixes(path_, model, kept.texts());
  }

  const TempFolder folder_;
  const std::string path_ = folder_.PathOf("prefixes");
};

TEST_F(PrefixFileTest, WhatWasLeftIsFoundAgainToTheByte) {
  Kept before(16);
  const StoredText stem = Counted(2 * kKeptPage, 0);
  StoredText left = stem, right = stem;
  left.resize(3 * kKeptPage + 7, 5);
  right.resize(2 * kKeptPage + 9, 6);
  before.Leave(left);
  before.Leave(right);
  before.Leave(Counted(40, 900));
  ASSERT_TRUE(Write(before).ok());

  Kept after(16);
  const PrefixFileReport report = Read(after).value();
  EXPECT_EQ(report.pages, before.cache->pages());
  EXPECT_EQ(report.left_out, 0u);
  const auto was = before.cache->All(), is = after.cache->All();
  ASSERT_EQ(is.size(), was.size());
  for (std::size_t i = 0; i < is.size(); ++i) {
    EXPECT_EQ(is[i].behind, was[i].behind);
    EXPECT_TRUE(std::ranges::equal(is[i].tokens, was[i].tokens));
    EXPECT_TRUE(
        std::ranges::equal(after.pool->BytesOf(*is[i].page), before.pool->BytesOf(*was[i].page)));
  }
  EXPECT_EQ(after.Found(left), left.size());
  EXPECT_EQ(after.Found(right), right.size());
  EXPECT_EQ(after.Found(Counted(40, 900)), 40u);
}

TEST_F(PrefixFileTest, WhereThereIsLessRoomTheLastUsedComeAndOnePageStaysFree) {
  Kept before(16);
  before.Leave(Counted(3 * kKeptPage, 0));
  before.Leave(Counted(2 * kKeptPage, 10'000));
  ASSERT_TRUE(Write(before).ok());
  Kept after(4);
  const PrefixFileReport report = Read(after).value();
  EXPECT_EQ(report.pages, 3u);
  EXPECT_EQ(report.left_out, 2u);
  EXPECT_EQ(after.pool->free_positions(), kKeptPage);
  EXPECT_EQ(after.Found(Counted(2 * kKeptPage, 10'000)), 2 * kKeptPage);
  EXPECT_EQ(after.Found(Counted(3 * kKeptPage, 0)), kKeptPage);
}

TEST_F(PrefixFileTest, OnlyTheSameModelAndLayoutMayReadIt) {
  Kept before(4);
  before.Leave(Counted(kKeptPage, 0));
  ASSERT_TRUE(Write(before).ok());
  Kept after(4), other(4, KvType::kQ8_0);
  EXPECT_EQ(Read(after, {{1, 3}}).status().code(), Code::kAlreadyExists);
  EXPECT_EQ(Read(other).status().code(), Code::kFailedPrecondition);
  EXPECT_EQ(after.cache->pages() + other.cache->pages(), 0u);
  EXPECT_TRUE(Read(after).ok());
}

TEST_F(PrefixFileTest, NobodyElseMayReadWhatRequestsSaid) {
  Kept before(4);
  ASSERT_TRUE(Write(before).ok());
  struct stat info;
  ASSERT_EQ(::stat(path_.c_str(), &info), 0);
  EXPECT_EQ(info.st_mode & 0777, 0600u);
}

TEST_F(PrefixFileTest, AFileThatIsNotThereIsNotFound) {
  Kept after(4);
  EXPECT_EQ(Read(after).status().code(), Code::kNotFound);
}

TEST_F(PrefixFileTest, WritingThatIsBrokenOffLeavesTheFileOfBeforeAndNothingElse) {
  Kept before(8);
  before.Leave(Counted(3 * kKeptPage, 0));
  ASSERT_TRUE(Write(before).ok());
  const std::string whole = folder_.Read("prefixes");
  before.Leave(Counted(2 * kKeptPage, 10'000));
  int most = 0;
  for (;; ++most) {  // broken off at each moment, the last one before the file has its name
    int asked = 0;
    const Status status = WritePrefixes(path_, kKeptModel, before.texts(), [&]() -> Status {
      return asked++ < most ? OkStatus() : Status(Code::kCancelled, "enough");
    });
    if (status.ok()) break;
    EXPECT_EQ(status.code(), Code::kCancelled);
    EXPECT_EQ(folder_.Read("prefixes"), whole);
    EXPECT_EQ(folder_.Count(), 1u);
  }
  EXPECT_EQ(most, 6) << "for each of five pages, and at the end";
  EXPECT_NE(folder_.Read("prefixes"), whole);
}

TEST_F(PrefixFileTest, ReadingThatIsBrokenOffLeavesTheCacheEmpty) {
  Kept before(8), after(8);
  before.Leave(Counted(3 * kKeptPage, 0));
  ASSERT_TRUE(Write(before).ok());
  int most = 0;
  for (;; ++most) {
    int asked = 0;
    const auto report = ReadPrefixes(path_, kKeptModel, after.texts(), [&]() -> Status {
      return asked++ < most ? OkStatus() : Status(Code::kCancelled, "enough");
    });
    if (report.ok()) break;
    EXPECT_EQ(report.status().code(), Code::kCancelled);
    EXPECT_EQ(after.cache->pages(), 0u);
    EXPECT_EQ(after.pool->free_positions(), 8 * kKeptPage);
  }
  EXPECT_EQ(most, 6) << "for each of three records, and for each page";
  EXPECT_EQ(after.cache->pages(), 3u);
}

TEST_F(PrefixFileTest, WhateverIsDamagedIsNoticedAndNothingIsKept) {
  Kept before(8);
  before.Leave(Counted(2 * kKeptPage + 30, 0));
  before.Leave(Counted(50, 700));
  ASSERT_TRUE(Write(before).ok());
  const std::string whole = folder_.Read("prefixes");
  Rng rng(TestSeed());
  for (int round = 0; round < 300; ++round) {
    std::string damaged = whole;
    if (round % 3 == 0) {
      damaged.resize(rng.Below(whole.size()));
    } else if (round % 3 == 1) {
      damaged += std::string(1 + rng.Below(50), '\0');
    } else {
      // Headers and tokens are small beside the pages, and everything hangs on them.
      const std::size_t at = rng.Below(round % 2 == 0 ? 200 : whole.size());
      damaged[at] = static_cast<char>(damaged[at] ^ (1 << rng.Below(8)));
    }
    folder_.Write("prefixes", damaged);
    Kept after(8);
    const auto report = Read(after);
    ASSERT_FALSE(report.ok()) << "round " << round;
    EXPECT_THAT(report.status().message(), HasSubstr(path_));
    EXPECT_EQ(after.cache->pages(), 0u);
    EXPECT_EQ(after.pool->free_positions(), 8 * kKeptPage);
  }
}

}  // namespace
}  // namespace troupe
