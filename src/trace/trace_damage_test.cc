// A damaged trace: what is intact is read, what is not is counted, nothing else happens.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>

#include "base/rng.h"
#include "testing/temp_folder.h"
#include "testing/test_seed.h"
#include "trace/trace_chunk.h"
#include "trace/trace_for_test.h"
#include "trace/trace_reader.h"

namespace troupe {
namespace {

using testing::HasSubstr;

constexpr std::uint32_t kTokens = 10;  // of a chunk

struct File {
  std::string bytes;
  std::vector<std::size_t> begins;  // of the chunks, and the end
  std::vector<TraceBlock> blocks;
};

File SomeFile(int chunks = 5, TraceHeader header = TestTraceHeader()) {
  Rng rng(3);
  File file;
  const auto append = [&file](std::span<const std::byte> bytes) {
    file.bytes.append(reinterpret_cast<const char*>(bytes.data()), bytes.size());
    file.begins.push_back(file.bytes.size());
  };
  append(EncodeTraceHeader(header));
  for (int i = 0; i < chunks; ++i) {
    file.blocks.push_back(RandomBlock(header, {{.position = i * kTokens, .tokens = kTokens}}, rng));
    append(EncodeTraceChunk(header, file.blocks.back(), std::uint64_t{kTokens} * i));
  }
  if (header.ends) append(EncodeTraceEnd(std::uint64_t{kTokens} * chunks));
  return file;
}

TraceHeader WithoutEnd() {
  TraceHeader header = TestTraceHeader();
  header.ends = false;
  return header;
}

struct Read {
  std::vector<TraceBlock> blocks;
  std::vector<bool> after_gap;
  TraceDamage damage;
};

Read ReadBytes(const std::string& bytes) {
  const TempFolder folder;
  TraceReader reader = TraceReader::Open(folder.Write("t", bytes)).value();
  Read read;
  while (auto block = reader.Next().value()) {
    read.blocks.push_back(std::move(*block));
    read.after_gap.push_back(reader.after_gap());
  }
  read.damage = reader.damage();
  return read;
}

void ExpectAllBut(const Read& read, const File& file, std::size_t lost) {
  std::vector<TraceBlock> expected = file.blocks;
  expected.erase(expected.begin() + static_cast<std::ptrdiff_t>(lost));
  EXPECT_EQ(read.blocks, expected);
  EXPECT_EQ(read.damage.places, 1u);
  for (std::size_t i = 0; i < read.after_gap.size(); ++i) EXPECT_EQ(read.after_gap[i], i == lost);
}

TEST(TraceDamageTest, AnyFlippedByteOfAChunkCostsThatChunkAlone) {
  const File file = SomeFile();
  for (std::size_t at = file.begins[2]; at < file.begins[3]; ++at) {
    std::string bytes = file.bytes;
    bytes[at] = static_cast<char>(bytes[at] ^ 0x20);
    const Read read = ReadBytes(bytes);
    SCOPED_TRACE(at - file.begins[2]);
    ExpectAllBut(read, file, 2);
    EXPECT_EQ(read.damage.tokens, kTokens);
    EXPECT_EQ(read.damage.bytes, file.begins[3] - file.begins[2]);
    EXPECT_THAT(read.damage.first, HasSubstr(fmt::format("byte {}: ", file.begins[2])));
  }
}

TEST(TraceDamageTest, AFileThatEndsAnywhereIsReadUpToThere) {
  const File file = SomeFile();
  for (std::size_t end = file.begins[0]; end < file.bytes.size(); ++end) {
    const Read read = ReadBytes(file.bytes.substr(0, end));
    const auto whole = std::ranges::upper_bound(file.begins, end) - file.begins.begin() - 1;
    ASSERT_EQ(read.blocks.size(), static_cast<std::size_t>(whole)) << end;
    EXPECT_EQ(read.damage.places, 1u) << end;
    EXPECT_EQ(read.damage.bytes, end - file.begins[static_cast<std::size_t>(whole)]);
  }
}

TEST(TraceDamageTest, AFileThatEndsWithAChunkAndWithoutItsMarkIsToldFromAWholeOne) {
  const File file = SomeFile();
  EXPECT_FALSE(ReadBytes(file.bytes).damage.any());
  const Read cut = ReadBytes(file.bytes.substr(0, file.begins[5]));
  EXPECT_EQ(cut.blocks.size(), 5u);
  EXPECT_THAT(ToString(cut.damage),
              HasSubstr("ends without its end mark: later tokens are missing"));
}

TEST(TraceDamageTest, ACutInsideOfAChunkIsNotSaidToLoseNothing) {
  const File file = SomeFile();
  const Read cut = ReadBytes(file.bytes.substr(0, file.begins[4] + 100));
  EXPECT_TRUE(cut.damage.cut_short);
  EXPECT_THAT(ToString(cut.damage),
              HasSubstr("ends without its end mark: later tokens are missing; the first: byte "));
  std::string both = file.bytes.substr(0, file.begins[5]);
  both[file.begins[1] + 60] ^= 1;
  EXPECT_THAT(ToString(ReadBytes(both).damage),
              HasSubstr("10 tokens lost, ends without its end mark"));
}

TEST(TraceDamageTest, AnOlderTraceWithoutAnEndMarkIsWhole) {
  const File file = SomeFile(5, WithoutEnd());
  const Read read = ReadBytes(file.bytes);
  EXPECT_EQ(read.blocks.size(), 5u);
  EXPECT_FALSE(read.damage.any());
}

TEST(TraceDamageTest, ChunksMissingBeforeTheEndAreCountedByItsMark) {
  const File file = SomeFile();
  std::string bytes = file.bytes;
  bytes.erase(file.begins[3], file.begins[5] - file.begins[3]);
  const Read read = ReadBytes(bytes);
  EXPECT_EQ(read.blocks.size(), 3u);
  EXPECT_EQ(read.damage.tokens, 2 * kTokens);
}

TEST(TraceDamageTest, AChunkThatWasCutOutIsNotAWholeTrace) {
  const File file = SomeFile();
  std::string bytes = file.bytes;
  bytes.erase(file.begins[2], file.begins[3] - file.begins[2]);
  const Read read = ReadBytes(bytes);
  ExpectAllBut(read, file, 2);
  EXPECT_EQ(read.damage.tokens, kTokens);
  EXPECT_THAT(read.damage.first, HasSubstr("a chunk from token 30 on, expected 20"));
}

TEST(TraceDamageTest, WhatStandsBehindTheEndIsDamage) {
  const File file = SomeFile();
  const Read read = ReadBytes(file.bytes + "more");
  EXPECT_EQ(read.blocks, file.blocks);
  EXPECT_EQ(read.damage.bytes, 4u);
  EXPECT_THAT(read.damage.first, HasSubstr("4 bytes behind the end"));
}

TEST(TraceDamageTest, BytesCutOutOrPutInCostAtMostTheChunksTheyAreIn) {
  const File file = SomeFile();
  Rng rng(TestSeed());
  for (int round = 0; round < 200; ++round) {
    std::string bytes = file.bytes;
    const std::size_t at =
        file.begins[1] + rng.Below(file.begins[3] - file.begins[1]);  // in chunk 1 or 2
    if (round % 2 == 0) {
      bytes.erase(at, 1 + rng.Below(file.begins[3] - at));
    } else {
      bytes.insert(at, std::string(1 + rng.Below(300), 'x'));
    }
    const Read read = ReadBytes(bytes);
    ASSERT_GE(read.blocks.size(), 3u);
    EXPECT_EQ(read.blocks.front(), file.blocks.front());
    EXPECT_EQ(read.blocks.back(), file.blocks.back());
    EXPECT_EQ(read.damage.tokens, (file.blocks.size() - read.blocks.size()) * kTokens);
  }
}

TEST(TraceDamageTest, ADamagedHeaderIsAnErrorThatSaysSo) {
  const File file = SomeFile();
  const TempFolder folder;
  for (std::size_t at = 0; at < file.begins[0]; ++at) {
    std::string bytes = file.bytes;
    bytes[at] = static_cast<char>(bytes[at] ^ 1);
    const auto reader = TraceReader::Open(folder.Write("t", bytes));
    ASSERT_FALSE(reader.ok()) << at;
    EXPECT_THAT(reader.status().message(), HasSubstr(folder.PathOf("t")));
    EXPECT_EQ(reader.status().message().find('\n'), std::string::npos);
  }
  for (std::size_t end = 0; end < file.begins[0]; ++end) {
    EXPECT_FALSE(TraceReader::Open(folder.Write("t", file.bytes.substr(0, end))).ok()) << end;
  }
}

// What a faulty program may write with all checksums right.
TEST(TraceDamageTest, IdsOutOfRangeAndScoresThatAreNoNumbersAreACountedSkip) {
  TraceHeader wide = TestTraceHeader();
  wide.experts = 200;  // what the block below is valid for
  Rng rng(5);
  File file = SomeFile(5, WithoutEnd());
  const TraceBlock wild = RandomBlock(wide, {{.tokens = kTokens}}, rng);
  const auto chunk = EncodeTraceChunk(wide, wild, 50);
  file.bytes.append(reinterpret_cast<const char*>(chunk.data()), chunk.size());
  Read read = ReadBytes(file.bytes);
  EXPECT_EQ(read.blocks, file.blocks);
  EXPECT_EQ(read.damage.tokens, kTokens);
  EXPECT_THAT(read.damage.first, HasSubstr("expected different ones below 12"));

  file = SomeFile(2, WithoutEnd());
  TraceBlock block = file.blocks[0];
  block.scores[7] = std::numeric_limits<float>::infinity();
  const auto infinite = EncodeTraceChunk(TestTraceHeader(), block, 20);
  file.bytes.append(reinterpret_cast<const char*>(infinite.data()), infinite.size());
  read = ReadBytes(file.bytes);
  EXPECT_EQ(read.blocks, file.blocks);
  EXPECT_THAT(read.damage.first, HasSubstr("a score that is no number"));
}

TEST(TraceDamageTest, AChunkThatComesAgainIsNotReadTwice) {
  const File file = SomeFile(3, WithoutEnd());
  const Read read =
      ReadBytes(file.bytes + file.bytes.substr(file.begins[1], file.begins[2] - file.begins[1]));
  EXPECT_EQ(read.blocks, file.blocks);
  EXPECT_EQ(read.damage.places, 1u);
}

TEST(TraceDamageTest, DamageIsToldInOneLine) {
  const File file = SomeFile();
  std::string bytes = file.bytes;
  bytes[file.begins[1] + 60] ^= 1;
  bytes[file.begins[3] + 60] ^= 1;
  EXPECT_THAT(ToString(ReadBytes(bytes).damage),
              testing::MatchesRegex("2 damaged places: .* bytes skipped, 20 tokens lost; the first:"
                                    " byte .*: a chunk does not have its checksum"));
}

}  // namespace
}  // namespace troupe
