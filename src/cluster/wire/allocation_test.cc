// What memory messages take: encoding rows allocates once, reading them copies none, and no frame
// makes its reader allocate much more than it is long. Counts what this program allocates.
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cstdlib>
#include <new>

#include "cluster/wire/random_messages_for_test.h"
#include "cluster/wire/wire_for_test.h"
#include "testing/test_seed.h"

namespace troupe {
namespace {

struct Allocations {
  std::size_t count = 0;
  std::size_t bytes = 0;
};
thread_local Allocations allocations;

void* Allocate(std::size_t size) {
  ++allocations.count;
  allocations.bytes += size;
  void* const memory = std::malloc(std::max<std::size_t>(size, 1));
  if (memory == nullptr) std::abort();
  return memory;
}

template <typename Work>
Allocations AllocationsOf(const Work& work) {
  allocations = {};
  work();
  return allocations;
}

}  // namespace
}  // namespace troupe

void* operator new(std::size_t size) { return troupe::Allocate(size); }
void operator delete(void* memory) noexcept { std::free(memory); }
void operator delete(void* memory, std::size_t) noexcept { std::free(memory); }

namespace troupe {
namespace {

constexpr std::size_t kLargeRows = 64, kLargeWidth = 2048;

struct LargeAsk {
  LargeAsk() : rows(kLargeRows * WireRowBytes(RowForm::kInt8, kLargeWidth)), indices(kLargeRows) {
    for (std::size_t i = 0; i < kLargeRows; ++i) indices[i] = static_cast<std::uint16_t>(i);
    ask.rows = {RowForm::kInt8, kLargeWidth, kLargeRows, rows};
    for (std::uint16_t expert = 0; expert < 8; ++expert) ask.experts.push_back({expert, indices});
  }
  std::vector<std::byte> rows;
  std::vector<std::uint16_t> indices;
  PeerAsk ask;
};

struct LargeAnswer {
  LargeAnswer() : rows(kLargeRows * WireRowBytes(RowForm::kFloat, kLargeWidth)) {
    answer.experts = {{1, kLargeRows / 2}, {2, kLargeRows / 2}};
    answer.rows = {RowForm::kFloat, kLargeWidth, kLargeRows, rows};
  }
  std::vector<std::byte> rows;
  PeerAnswer answer;
};

TEST(MessageMemory, IsAllocatedOnceToEncodeAnAskOrAnAnswer) {
  const LargeAsk ask;
  const LargeAnswer answer;
  WireFrame frame;
  EXPECT_EQ(AllocationsOf([&] { frame = Encode(ask.ask); }).count, 1u);
  EXPECT_EQ(AllocationsOf([&] { frame = MakeFrame(ask.ask).Take(); }).count, 1u);
  EXPECT_EQ(AllocationsOf([&] { frame = Encode(answer.answer); }).count, 1u);
  EXPECT_EQ(AllocationsOf([&] { frame = MakeFrame(answer.answer).Take(); }).count, 1u);
  EXPECT_EQ(frame.capacity(), frame.size());
}

TEST(MessageMemory, IsNotTakenForRowsThatAreRead) {
  const WireFrame ask = Encode(LargeAsk().ask), answer = Encode(LargeAnswer().answer);
  EXPECT_LE(AllocationsOf([&] { ASSERT_TRUE(DecodePeerAsk(ask).ok()); }).bytes, 1024u);
  EXPECT_LE(AllocationsOf([&] { ASSERT_TRUE(DecodePeerAnswer(answer).ok()); }).bytes, 1024u);
}

// An expert of an ask is 32 bytes in memory and 6 in its frame, a link of a report 48 and 19, and
// a report's counts are as many as its model has experts. The rest is an error's text.
constexpr std::size_t kReportCountsBytes = kMaxGridCells * sizeof(std::uint32_t);

void ExpectModestMemory(const WireFrame& frame) {
  const bool is_report = !frame.empty() && frame[0] == std::byte{13};
  const std::size_t limit = 8 * frame.size() + 4096 + (is_report ? kReportCountsBytes : 0);
  EXPECT_LE(AllocationsOf([&] { (void)DecodePeerMessage(frame).ok(); }).bytes, limit)
      << HexOfFrame(frame);
}

TEST(MessageMemory, IsInProportionToTheFrameWhateverItClaims) {
  Rng rng(TestSeed());
  RandomMessages messages(rng);
  for (std::size_t kind = 0; kind < std::variant_size_v<PeerMessage>; ++kind) {
    const WireFrame frame = EncodePeerMessage(messages.OfKind(kind));
    for (std::size_t at = 1; at < std::min<std::size_t>(frame.size(), 100); ++at) {
      for (const std::size_t bytes : {1, 2, 3, 4, 8}) {
        WireFrame huge = frame;
        std::fill_n(huge.begin() + static_cast<std::ptrdiff_t>(at),
                    std::min(bytes, huge.size() - at), std::byte{0xff});
        ExpectModestMemory(huge);
        huge.resize(at + std::min(bytes, huge.size() - at));
        ExpectModestMemory(huge);
      }
    }
  }
}

TEST(MessageMemory, IsRefusedToAReportOfAModelThatNobodyHas) {
  const std::string front = "0d" + std::string(80, '0');
  const auto bytes_of = [](const std::string& hex) {
    const WireFrame frame = FrameOfHex(hex);
    return AllocationsOf([&] { EXPECT_FALSE(DecodePeerReport(frame).ok()); }).bytes;
  };
  EXPECT_LE(bytes_of(front + "00100000 00000100 01 00000000 0000"), 4096u);
  EXPECT_LE(bytes_of(front + "ffffffff ffffffff 01 00000000 0000"), 4096u);
  EXPECT_LE(bytes_of(front + "00010000 00100000 00 00000000 0000"), 4096u);
}

}  // namespace
}  // namespace troupe
