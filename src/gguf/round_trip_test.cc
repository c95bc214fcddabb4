// What the writer's side makes of any metadata and tensors, the reader's side gives back.
#include <fmt/core.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <limits>
#include <string>
#include <utility>

#include "base/rng.h"
#include "gguf/encode.h"
#include "gguf/header.h"
#include "testing/test_seed.h"

namespace troupe {
namespace {

std::string RandomText(Rng& rng, std::uint64_t max) {
  std::string text(rng.Below(max + 1), '\0');
  for (char& c : text) c = static_cast<char>(rng.Next());
  return text;
}

template <typename T>
T RandomNumber(Rng& rng) {
  if constexpr (std::is_floating_point_v<T>) {
    return static_cast<T>(rng.Normal());  // no NaN: it would not compare equal to itself
  } else {
    return static_cast<T>(rng.Next());
  }
}

Array RandomArray(Rng& rng, int depth);

template <std::size_t I>
Array RandomArrayOf(Rng& rng, int depth) {
  using List = std::variant_alternative_t<I, Array::Elements>;
  const std::uint64_t size = rng.Below(8);
  List list;
  for (std::uint64_t i = 0; i < size; ++i) {
    if constexpr (std::is_same_v<List, StringArray>) {
      list.Append(RandomText(rng, 12));
    } else if constexpr (std::is_same_v<List, std::vector<Array>>) {
      if (depth < kMaxArrayDepth) list.push_back(RandomArray(rng, depth + 1));
    } else {
      list.push_back(RandomNumber<typename List::value_type>(rng));
    }
  }
  return Array{std::move(list)};
}

template <std::size_t I>
Value RandomValueOf(Rng& rng) {
  using T = std::variant_alternative_t<I, Value>;
  if constexpr (std::is_same_v<T, Array>) {
    return RandomArray(rng, 1);
  } else if constexpr (std::is_same_v<T, std::string>) {
    return RandomText(rng, 300);
  } else {
    return RandomNumber<T>(rng);
  }
}

template <std::size_t... Is>
Array RandomArray(Rng& rng, int depth, std::index_sequence<Is...>) {
  using Make = Array (*)(Rng&, int);
  constexpr Make kMake[] = {RandomArrayOf<Is>...};
  return kMake[rng.Below(sizeof...(Is))](rng, depth);
}
Array RandomArray(Rng& rng, int depth) {
  return RandomArray(rng, depth, std::make_index_sequence<kValueTypeCount>());
}

template <std::size_t... Is>
Value RandomValue(Rng& rng, std::index_sequence<Is...>) {
  using Make = Value (*)(Rng&);
  constexpr Make kMake[] = {RandomValueOf<Is>...};
  return kMake[rng.Below(sizeof...(Is))](rng);
}

Metadata RandomMetadata(Rng& rng) {
  Metadata metadata("random");
  for (std::uint64_t n = rng.Below(30); n > 0; --n) {
    metadata.Set(fmt::format("k{}", RandomText(rng, 20)),
                 RandomValue(rng, std::make_index_sequence<kValueTypeCount>()));
  }
  if (rng.Below(2) == 0) metadata.Set("general.alignment", std::uint32_t{1} << rng.Below(13));
  return metadata;
}

std::vector<TensorSpec> RandomTensors(Rng& rng) {
  std::vector<TensorSpec> tensors(rng.Below(12));
  for (std::size_t i = 0; i < tensors.size(); ++i) {
    TensorSpec& tensor = tensors[i];
    const TensorTypeInfo& type = AllTensorTypes()[rng.Below(AllTensorTypes().size())];
    tensor.name = fmt::format("{}{}", i, RandomText(rng, 60));
    tensor.type = type.type;
    tensor.rank =
        static_cast<std::uint32_t>(type.block_elems == 1 ? rng.Below(5) : 1 + rng.Below(4));
    for (std::uint32_t d = 0; d < tensor.rank; ++d) tensor.dims[d] = 1 + rng.Below(5);
    if (tensor.rank > 0) tensor.dims[0] *= type.block_elems;
  }
  return tensors;
}

Result<GgufHeader> ParseWithData(const EncodedHeader& encoded) {
  std::vector<std::byte> file = encoded.bytes;
  file.resize(encoded.total.count());
  return ParseGguf(SpanSource("random", file));
}

TEST(EncodeHeader, AnyKeysAndTensorsComeBackAsTheyWere) {
  Rng rng(TestSeed());
  for (int round = 0; round < 500; ++round) {
    const Metadata metadata = RandomMetadata(rng);
    const std::vector<TensorSpec> tensors = RandomTensors(rng);
    const EncodedHeader encoded = EncodeHeader(metadata, tensors).value();
    const GgufHeader header = ParseWithData(encoded).value();
    ASSERT_EQ(header.metadata, metadata) << "round " << round;
    ASSERT_EQ(header.tensors, encoded.tensors) << "round " << round;
    ASSERT_EQ(header.data_offset, AlignUp(encoded.bytes.size(), encoded.alignment));
    ASSERT_EQ(header.alignment, encoded.alignment);
  }
}

TEST(EncodeHeader, AVocabularyOf150000TokensComesBack) {
  StringArray tokens;
  for (int i = 0; i < 150'000; ++i) tokens.Append(std::to_string(i * 7919LL));
  Metadata metadata;
  metadata.Set("tokenizer.ggml.tokens", Array{tokens});
  const GgufHeader header = ParseWithData(EncodeHeader(metadata, {}).value()).value();
  EXPECT_TRUE(*header.metadata.GetStrings("tokenizer.ggml.tokens").value() == tokens);
}

TEST(EncodeHeader, FloatsKeepEveryBitEvenOfNan) {
  Metadata metadata;
  metadata.Set("nan", std::numeric_limits<float>::quiet_NaN());
  metadata.Set("zero", Array{std::vector<double>{-0.0, std::numeric_limits<double>::denorm_min()}});
  const EncodedHeader once = EncodeHeader(metadata, {}).value();
  const EncodedHeader twice = EncodeHeader(ParseWithData(once).value().metadata, {}).value();
  EXPECT_EQ(once.bytes, twice.bytes);
}

TEST(EncodeHeader, RefusesWhatCouldNotBeRead) {
  const auto error = [](const Metadata& metadata, std::vector<TensorSpec> tensors) {
    return EncodeHeader(metadata, tensors).status().message();
  };
  using ::testing::HasSubstr;
  const TensorSpec tensor("t", TensorType::kF32, {4});
  Metadata metadata;
  EXPECT_THAT(error(metadata, {tensor, tensor}), HasSubstr("tensor 't': a second one"));
  EXPECT_THAT(error(metadata, {{"", TensorType::kF32, {4}}}), HasSubstr("a name of 0 bytes"));
  EXPECT_THAT(error(metadata, {{std::string(65, 'n'), TensorType::kF32, {4}}}),
              HasSubstr("a name of 65 bytes, 1 to 64 expected"));
  EXPECT_THAT(error(metadata, {{"t", TensorType::kQ8_0, {33}}}),
              HasSubstr("tensor 't': rows of 33 elements"));
  const std::uint64_t exa = std::uint64_t{1} << 60;
  EXPECT_THAT(error(metadata, {{"t", TensorType::kF32, {exa / 2}}, {"u", TensorType::kF32, {exa}}}),
              HasSubstr("tensor 'u': its 4611686018427387904 bytes make the file larger"));

  metadata.Set("", true);
  EXPECT_THAT(error(metadata, {}), HasSubstr("key '' of 0 bytes"));
  Array nested{std::vector<std::uint8_t>()};
  for (int i = 0; i < kMaxArrayDepth; ++i) nested = Array{std::vector<Array>{nested}};
  metadata = Metadata();
  metadata.Set("deep", nested);
  EXPECT_THAT(error(metadata, {}), HasSubstr("key 'deep': arrays nested more than 4 deep"));
  metadata = Metadata("origin");
  metadata.Set("general.alignment", std::uint32_t{48});
  EXPECT_THAT(error(metadata, {}), HasSubstr("uint32 48, a power of two"));
}

}  // namespace
}  // namespace troupe
