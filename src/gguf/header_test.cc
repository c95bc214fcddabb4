// Files built byte by byte, right and wrong: what the writer cannot produce is tested here.
#include "gguf/header.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstring>
#include <functional>
#include <string>

#include "base/bytes.h"
#include "base/rng.h"
#include "gguf/format.h"
#include "testing/test_seed.h"

namespace troupe {
namespace {

using ::testing::HasSubstr;
using ::testing::SizeIs;

std::string U8(std::uint8_t n) { return std::string(1, static_cast<char>(n)); }
template <typename T>
std::string Raw(T n) {
  std::string bytes(sizeof(T), '\0');
  std::memcpy(bytes.data(), &n, sizeof(T));
  return bytes;
}
std::string U32(std::uint32_t n) { return Raw(n); }
std::string U64(std::uint64_t n) { return Raw(n); }
std::string Str(std::string_view s) { return U64(s.size()) + std::string(s); }

// A file whose every field a test can spoil.
struct RawGguf {
  std::string magic = "GGUF";
  std::string version = U32(3);
  std::string tensor_count = U64(2);
  std::string key_count = U64(2);
  std::string keys = Str("general.name") + U32(8) + Str("raw") + Str("ok") + U32(7) + U8(1);
  // 4 x 2 floats at 0, one block of 32 at 32.
  std::string tensor_a = Str("a") + U32(2) + U64(4) + U64(2) + U32(0) + U64(0);
  std::string tensor_b = Str("b") + U32(1) + U64(32) + U32(8) + U64(32);
  std::size_t alignment = 32;
  std::string data = std::string(32 + 34, '\x5a');

  std::string Header() const {
    std::string all = magic + version + tensor_count + key_count + keys + tensor_a + tensor_b;
    all.resize(AlignUp(all.size(), alignment));
    return all;
  }
  std::string File() const { return Header() + data; }
};

// Where tensor a begins: 24 bytes of header and the keys.
const std::uint64_t kTensorA = 24 + RawGguf().keys.size();

Result<GgufHeader> Parse(std::string_view file) {
  return ParseGguf(SpanSource("m.gguf", std::as_bytes(std::span(file.data(), file.size()))));
}
std::string ErrorOf(const RawGguf& raw) {
  const auto header = Parse(raw.File());
  return header.ok() ? "no error" : header.status().ToString();
}

TEST(ParseGguf, ReadsKeysAndTensorsOfVersions2And3) {
  for (const std::uint32_t version : {2u, 3u}) {
    RawGguf raw;
    raw.version = U32(version);
    const GgufHeader header = Parse(raw.File()).value();
    EXPECT_EQ(header.version, version);
    EXPECT_EQ(header.alignment, 32u);
    EXPECT_EQ(header.data_offset, raw.Header().size());
    EXPECT_EQ(header.metadata.GetString("general.name").value(), "raw");
    EXPECT_TRUE(header.metadata.GetBool("ok").value());
    ASSERT_THAT(header.tensors, SizeIs(2));
    EXPECT_EQ(header.tensors[0],
              (TensorInfo{{"a", TensorType::kF32, {4, 2}}, 32_B, 0, header.data_offset}));
    EXPECT_EQ(header.tensors[1],
              (TensorInfo{{"b", TensorType::kQ8_0, {32}}, 34_B, 0, header.data_offset + 32}));
  }
}

TEST(ParseGguf, CutAtAnyByteIsAnErrorAndNeverACrash) {
  const std::string whole = RawGguf().File();
  for (std::size_t n = 0; n < whole.size(); ++n) {
    // A copy of its own, so that the sanitizer sees a read past its end.
    const std::string cut = whole.substr(0, n);
    const auto header = Parse(cut);
    ASSERT_FALSE(header.ok()) << "cut at " << n;
    ASSERT_THAT(header.status().message(), HasSubstr("m.gguf")) << "cut at " << n;
  }
}

TEST(ParseGguf, SaysWhereAFileIsCut) {
  const RawGguf raw;
  EXPECT_EQ(Parse(raw.File().substr(0, kTensorA + 6)).status().ToString(),
            "data loss: m.gguf, byte 74: tensor 1 of 2: 8 bytes wanted at byte 74, but the file "
            "ends at byte 80");
  const std::string lacks_one = raw.File().substr(0, raw.File().size() - 1);
  EXPECT_THAT(Parse(lacks_one).status().message(),
              HasSubstr("tensor 'b': 34 bytes at 32 of the tensor data, which has 65"));
}

struct Fault {
  const char* name;
  std::function<void(RawGguf&)> spoil;
  const char* error;
};
void PrintTo(const Fault& fault, std::ostream* out) { *out << fault.name; }

class SpoiltGguf : public ::testing::TestWithParam<Fault> {};

TEST_P(SpoiltGguf, IsRefusedWithTheReason) {
  RawGguf raw;
  GetParam().spoil(raw);
  EXPECT_THAT(ErrorOf(raw), HasSubstr(GetParam().error));
}

const std::uint64_t kHuge = ~std::uint64_t{0};

INSTANTIATE_TEST_SUITE_P(
    Headers, SpoiltGguf,
    ::testing::Values(
        Fault{"Magic", [](RawGguf& r) { r.magic = "GGML"; },
              "invalid argument: m.gguf: begins with 'GGML', 'GGUF' expected"},
        Fault{"Version1", [](RawGguf& r) { r.version = U32(1); },
              "unimplemented: m.gguf, byte 4: version 1, GGUF version 2 or 3"},
        Fault{"Version4", [](RawGguf& r) { r.version = U32(4); }, "version 4, GGUF version 2 or 3"},
        Fault{"Version0", [](RawGguf& r) { r.version = U32(0); }, "version 0, GGUF version 2 or 3"},
        Fault{"BigEndian", [](RawGguf& r) { r.version = U32(0x03000000); },
              "unimplemented: m.gguf, byte 4: big-endian, GGUF version 2 or 3 in little-endian"},
        Fault{"TensorCount", [](RawGguf& r) { r.tensor_count = U64(kHuge); },
              "byte 8: 18446744073709551615 tensors where"},
        Fault{"OneTensorTooMany", [](RawGguf& r) { r.tensor_count = U64(3); }, "tensor 3 of 3"},
        Fault{"KeyCount", [](RawGguf& r) { r.key_count = U64(kHuge); },
              "byte 16: 18446744073709551615 keys where"}),
    [](const auto& fault) { return fault.param.name; });

INSTANTIATE_TEST_SUITE_P(
    Keys, SpoiltGguf,
    ::testing::Values(
        Fault{"EmptyKey", [](RawGguf& r) { r.keys = Str("") + U32(7) + U8(1); },
              "byte 24: key 1 of 2: the key has no characters"},
        Fault{"HugeKey", [](RawGguf& r) { r.keys = U64(kHuge); },
              "byte 24: key 1 of 2: a string of 18446744073709551615 bytes where"},
        Fault{"LongKey", [](RawGguf& r) { r.keys = Str(std::string(65536, 'k')) + U32(7) + U8(1); },
              "a string of 65536 bytes, at most 65535 allowed"},
        Fault{"SameKeyTwice",
              [](RawGguf& r) { r.keys = Str("k") + U32(7) + U8(1) + Str("k") + U32(7) + U8(0); },
              "byte 38: key 'k': a second one of that name"},
        Fault{"ValueType", [](RawGguf& r) { r.keys = Str("k") + U32(13) + U8(1); },
              "byte 33: key 'k': value type 13, at most 12 expected"},
        Fault{"Bool", [](RawGguf& r) { r.keys = Str("k") + U32(7) + U8(2); },
              "byte 37: key 'k': a bool of 2, 0 or 1 expected"},
        Fault{"BoolInArray",
              [](RawGguf& r) { r.keys = Str("k") + U32(9) + U32(7) + U64(2) + U8(1) + U8(255); },
              "key 'k': a bool of 255, 0 or 1 expected"},
        Fault{"HugeString", [](RawGguf& r) { r.keys = Str("k") + U32(8) + U64(kHuge - 4); },
              "key 'k': a string of 18446744073709551611 bytes where"},
        Fault{"ArrayType", [](RawGguf& r) { r.keys = Str("k") + U32(9) + U32(99) + U64(0); },
              "key 'k': value type 99"},
        // 2^61 + 1 elements of 8 bytes: the product wraps to 8.
        Fault{"ArrayCountThatWraps",
              [](RawGguf& r) {
                r.keys = Str("k") + U32(9) + U32(10) + U64((std::uint64_t{1} << 61) + 1) + U64(0);
              },
              "key 'k': an array of 2305843009213693953 elements where"},
        Fault{"StringArrayCount",
              [](RawGguf& r) { r.keys = Str("k") + U32(9) + U32(8) + U64(1000) + Str("x"); },
              "key 'k': an array of 1000 elements where"},
        Fault{"StringInArray",
              [](RawGguf& r) { r.keys = Str("k") + U32(9) + U32(8) + U64(1) + U64(5000); },
              "byte 49: key 'k': a string of 5000 bytes where"},
        Fault{"NestedTooDeep",
              [](RawGguf& r) {
                r.keys = Str("k") + U32(9);
                for (int i = 0; i < 5; ++i) r.keys += U32(9) + U64(1);
                r.keys += U32(0) + U64(0);
              },
              "key 'k': arrays nested more than 4 deep"},
        Fault{"AlignmentOfThree",
              [](RawGguf& r) {
                r.keys = Str("general.alignment") + U32(4) + U32(3) + Str("k") + U32(0) + U8(0);
              },
              "m.gguf: key 'general.alignment' is uint32 3, a power of two below 2^32 expected"},
        Fault{"AlignmentOfZero",
              [](RawGguf& r) {
                r.keys = Str("general.alignment") + U32(4) + U32(0) + Str("k") + U32(0) + U8(0);
              },
              "is uint32 0, a power of two"},
        Fault{"AlignmentTooLarge",
              [](RawGguf& r) {
                r.keys = Str("general.alignment") + U32(10) + U64(std::uint64_t{1} << 32) +
                         Str("k") + U32(0) + U8(0);
              },
              "is uint64 4294967296, a power of two below 2^32"},
        Fault{"AlignmentOfAnotherType",
              [](RawGguf& r) {
                r.keys = Str("general.alignment") + U32(8) + Str("32") + Str("k") + U32(0) + U8(0);
              },
              "is string '32', an integer of at least 0 expected"}),
    [](const auto& fault) { return fault.param.name; });

INSTANTIATE_TEST_SUITE_P(
    Tensors, SpoiltGguf,
    ::testing::Values(
        Fault{"EmptyName", [](RawGguf& r) { r.tensor_a.replace(0, 9, Str("")); },
              "tensor 1 of 2: the name has no characters"},
        Fault{"LongName", [](RawGguf& r) { r.tensor_a.replace(0, 9, Str(std::string(65, 'n'))); },
              "tensor 1 of 2: a string of 65 bytes, at most 64 allowed"},
        Fault{"SameNameTwice", [](RawGguf& r) { r.tensor_b[8] = 'a'; },
              "tensor 'a': a second one of that name"},
        Fault{"NameWithControlCharacters",
              [](RawGguf& r) { r.tensor_a[8] = '\n', r.tensor_a[9] = 9; },
              "tensor '\\x0a': 9 dimensions"},
        Fault{"Rank", [](RawGguf& r) { r.tensor_a.replace(9, 4, U32(7)); },
              "tensor 'a': 7 dimensions, at most 4 allowed"},
        Fault{"ZeroDimension", [](RawGguf& r) { r.tensor_a.replace(21, 8, U64(0)); },
              "tensor 'a': dimension 1 is 0"},
        Fault{"ElementsThatWrap", [](RawGguf& r) { r.tensor_a.replace(21, 8, U64(kHuge)); },
              "tensor 'a': shape [4, 18446744073709551615] has more than 2^64 elements"},
        Fault{"BytesThatWrap",
              [](RawGguf& r) { r.tensor_a.replace(21, 8, U64(std::uint64_t{1} << 60)); },
              "has more than 2^64 bytes"},
        Fault{"RowCutsABlock", [](RawGguf& r) { r.tensor_b.replace(13, 8, U64(31)); },
              "tensor 'b': rows of 31 elements, a multiple of 32 expected for Q8_0"},
        Fault{"UnknownType", [](RawGguf& r) { r.tensor_b.replace(21, 4, U32(77)); },
              "tensor 'b': type number 77, one of F32, F16, Q4_0"},
        Fault{"UnreadType", [](RawGguf& r) { r.tensor_b.replace(21, 4, U32(34)); },
              "tensor 'b': type TQ1_0, which this does not read; a Q4_K_M of the same model "
              "would do"},
        Fault{"OffsetNotAligned", [](RawGguf& r) { r.tensor_b.replace(25, 8, U64(33)); },
              "tensor 'b': offset 33, a multiple of 32 expected"},
        Fault{"OffsetPastTheEnd", [](RawGguf& r) { r.tensor_b.replace(25, 8, U64(96)); },
              "tensor 'b': 34 bytes at 96 of the tensor data, which has 66"},
        Fault{"OffsetThatWraps", [](RawGguf& r) { r.tensor_b.replace(25, 8, U64(kHuge - 31)); },
              "tensor 'b': 34 bytes at 18446744073709551584 of the tensor data"},
        Fault{"LargerThanTheFile", [](RawGguf& r) { r.tensor_b.replace(13, 8, U64(64)); },
              "tensor 'b': 68 bytes at 32 of the tensor data, which has 66"},
        Fault{"Overlap", [](RawGguf& r) { r.tensor_a.replace(21, 8, U64(4)); },
              "tensor 'b' begins inside tensor 'a', which has 64 bytes"},
        Fault{"SamePlace", [](RawGguf& r) { r.tensor_b.replace(25, 8, U64(0)); },
              "begins inside tensor"}),
    [](const auto& fault) { return fault.param.name; });

TEST(ParseGguf, NamesTheByteOfTheFieldAtFault) {
  RawGguf raw;
  raw.tensor_a.replace(9, 4, U32(7));
  EXPECT_EQ(ErrorOf(raw), fmt::format("data loss: m.gguf, byte {}: tensor 'a': 7 dimensions, at "
                                      "most 4 allowed",
                                      kTensorA + 9));
}

TEST(ParseGguf, HonoursTheAlignmentOfTheFile) {
  RawGguf raw;
  raw.keys = Str("general.alignment") + U32(4) + U32(256) + Str("ok") + U32(7) + U8(1);
  raw.alignment = 256;
  raw.tensor_b.replace(25, 8, U64(256));
  raw.data.resize(256 + 34);
  const GgufHeader header = Parse(raw.File()).value();
  EXPECT_EQ(header.alignment, 256u);
  EXPECT_EQ(header.tensors[1].offset, 512u);
}

TEST(ParseGguf, AllowsAnyOrderOfTheData) {
  RawGguf raw;
  raw.tensor_a.replace(raw.tensor_a.size() - 8, 8, U64(64));
  raw.tensor_b.replace(25, 8, U64(0));
  raw.data.resize(96);
  EXPECT_TRUE(Parse(raw.File()).ok()) << ErrorOf(raw);
}

TEST(ParseGguf, RefusesDataThatBelongsToNoTensor) {
  RawGguf between;
  between.tensor_b.replace(25, 8, U64(64));
  between.data.resize(64 + 34);
  EXPECT_THAT(ErrorOf(between), HasSubstr("tensor 'b' begins there, expected at"));
  RawGguf before;
  before.tensor_a.replace(before.tensor_a.size() - 8, 8, U64(32));
  before.tensor_b.replace(25, 8, U64(64));
  before.data.resize(64 + 34);
  EXPECT_THAT(ErrorOf(before), HasSubstr("tensor 'a' begins there, expected at"));
}

TEST(ParseGguf, ATypeThatTakesLessThanIsThereIsRefused) {
  RawGguf raw;
  raw.tensor_a.replace(29, 4, U32(1));  // F16: 16 bytes of the 32
  raw.tensor_a.replace(13, 8, U64(8));  // in longer rows: 32 bytes, as before
  EXPECT_TRUE(Parse(raw.File()).ok()) << ErrorOf(raw);
  raw.tensor_a.replace(13, 8, U64(64));
  raw.tensor_a.replace(29, 4, U32(0));
  raw.tensor_b.replace(25, 8, U64(512));
  raw.data.resize(512 + 34);
  EXPECT_TRUE(Parse(raw.File()).ok()) << ErrorOf(raw);
  raw.tensor_a.replace(29, 4, U32(1));
  EXPECT_THAT(ErrorOf(raw), HasSubstr("belongs to no tensor"));
}

TEST(ParseGguf, AFileOfKeysAloneNeedsNoPadding) {
  RawGguf raw;
  raw.tensor_count = U64(0);
  const std::string file = raw.magic + raw.version + raw.tensor_count + raw.key_count + raw.keys;
  EXPECT_THAT(Parse(file).value().tensors, SizeIs(0));
}

TEST(ParseGguf, AHeaderWithoutEndStopsAtItsLimit) {
  // Zeros without end behind a valid beginning: each an empty string in an array.
  class Endless final : public ByteSource {
   public:
    std::string_view name() const override { return "endless"; }
    std::uint64_t size() const override { return std::uint64_t{1} << 50; }
    Status ReadAt(std::uint64_t offset, std::span<std::byte> out) const override {
      const std::string head = std::string("GGUF") + U32(3) + U64(0) + U64(1) + Str("k") + U32(9) +
                               U32(8) + U64(std::uint64_t{1} << 40);
      std::memset(out.data(), 0, out.size());
      if (offset == 0) std::memcpy(out.data(), head.data(), std::min(out.size(), head.size()));
      return OkStatus();
    }
  };
  const Status status = ParseGguf(Endless()).status();
  EXPECT_THAT(status.message(), HasSubstr("an array of 1099511627776 elements where"));
}

TEST(ParseGguf, RandomDamageNeverBreaksAPromise) {
  Rng rng(TestSeed());
  const std::string whole = RawGguf().File();
  int parsed = 0;
  for (int round = 0; round < 20'000; ++round) {
    std::string damaged = whole;
    for (std::uint64_t n = 1 + rng.Below(4); n > 0; --n) {
      // Small numbers are as likely as large ones: they get further.
      const auto byte = rng.Below(2) == 0 ? rng.Below(16) : rng.Below(256);
      damaged[rng.Below(damaged.size())] = static_cast<char>(byte);
    }
    const auto header = Parse(damaged);
    if (!header.ok()) continue;
    ++parsed;
    for (const TensorInfo& tensor : header->tensors) {
      ASSERT_EQ((tensor.offset - header->data_offset) % header->alignment, 0u);
      ASSERT_LE(tensor.bytes.count(), damaged.size());
      ASSERT_LE(tensor.offset, damaged.size() - tensor.bytes.count());
    }
  }
  EXPECT_GT(parsed, 1000);  // damage to names, values and data leaves a valid file
}

}  // namespace
}  // namespace troupe
