#include "split/codec/rans.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cmath>

#include "base/rng.h"
#include "testing/test_seed.h"

namespace troupe {
namespace {

using Symbols = std::vector<std::uint8_t>;

// Of few or many symbols, as likely as each other or not at all.
Symbols RandomSymbols(Rng& rng, std::size_t count, std::size_t alphabet, double spread) {
  Symbols symbols(count);
  for (std::uint8_t& symbol : symbols) {
    const double at = std::abs(rng.Normal()) * spread;
    symbol = static_cast<std::uint8_t>(
        spread == 0 ? rng.Below(alphabet)
                    : std::min(static_cast<double>(alphabet - 1), std::floor(at)));
  }
  return symbols;
}

std::vector<std::byte> StreamOf(const Symbols& symbols) {
  std::vector<std::byte> stream;
  AppendStream(symbols, stream);
  return stream;
}

double BitsByFrequencies(const Symbols& symbols) {
  std::array<double, 256> counts{};
  for (const std::uint8_t symbol : symbols) ++counts[symbol];
  double bits = 0;
  for (const double count : counts) {
    if (count > 0) bits -= count * std::log2(count / static_cast<double>(symbols.size()));
  }
  return bits;
}

TEST(Rans, SymbolsComeBackAndNothingIsLeft) {
  Rng rng(TestSeed());
  for (int round = 0; round < 300; ++round) {
    const Symbols symbols = RandomSymbols(rng, 1 + rng.Below(3000), 1 + rng.Below(256),
                                          static_cast<double>(rng.Below(60)));
    std::vector<std::byte> stream = StreamOf(symbols);
    stream.push_back(std::byte{42});  // of what comes behind it
    Symbols back(symbols.size());
    std::span<const std::byte> in = stream;
    ASSERT_TRUE(TakeStream(in, back).ok()) << "round " << round;
    EXPECT_EQ(back, symbols);
    EXPECT_EQ(in.size(), 1u);
  }
}

TEST(Rans, EverySymbolAloneAndBesideARareOneComesBack) {
  for (unsigned symbol = 0; symbol < 256; ++symbol) {
    Symbols symbols(5000, static_cast<std::uint8_t>(symbol));
    for (const bool beside : {false, true}) {
      if (beside) symbols[1234] = static_cast<std::uint8_t>(symbol + 1);  // 1 in 4096 at least
      Symbols back(symbols.size());
      const std::vector<std::byte> stream = StreamOf(symbols);
      std::span<const std::byte> in = stream;
      ASSERT_TRUE(TakeStream(in, back).ok());
      EXPECT_EQ(back, symbols);
    }
  }
}

// As docs/formats/states.md says it, slowly.
Symbols ReadByTheFormat(const std::vector<std::byte>& stream, std::size_t count) {
  std::size_t at = 0;
  const auto number = [&](std::size_t bytes) {
    std::uint64_t value = 0;
    for (std::size_t i = 0; i < bytes; ++i) {
      value |= std::to_integer<std::uint64_t>(stream[at++]) << (8 * i);
    }
    return value;
  };
  const std::uint64_t distinct = number(2);
  Symbols symbols;
  if (distinct == 0) {
    while (symbols.size() < count) symbols.push_back(static_cast<std::uint8_t>(number(1)));
    return symbols;
  }
  std::vector<std::array<std::uint64_t, 3>> table;  // symbol, frequency, those before
  std::uint64_t before = 0;
  for (std::uint64_t i = 0; i < distinct; ++i) {
    const std::uint64_t symbol = number(1), frequency = number(2);
    table.push_back({symbol, frequency, before});
    before += frequency;
  }
  EXPECT_EQ(before, 4096u);
  number(4);
  std::array<std::uint64_t, 4> states;
  for (std::uint64_t& state : states) state = number(4);
  for (std::size_t i = 0; i < count; ++i) {
    std::uint64_t& x = states[i % 4];
    for (const auto& [symbol, frequency, below] : table) {
      if (x % 4096 < below || x % 4096 >= below + frequency) continue;
      symbols.push_back(static_cast<std::uint8_t>(symbol));
      x = frequency * (x / 4096) + x % 4096 - below;
      break;
    }
    if (x < 1 << 15) x = x * 65536 + number(2);
  }
  EXPECT_EQ(at, stream.size());
  return symbols;
}

TEST(Rans, IsReadAsTheFormatSays) {
  Rng rng(TestSeed());
  for (int round = 0; round < 50; ++round) {
    const Symbols symbols = RandomSymbols(rng, 1 + rng.Below(2000), 1 + rng.Below(256),
                                          static_cast<double>(rng.Below(10)));
    EXPECT_EQ(ReadByTheFormat(StreamOf(symbols), symbols.size()), symbols);
  }
}

TEST(Rans, SymbolsThatItWouldMakeLongerStayAsTheyAre) {
  const std::vector<std::byte> expected = {std::byte{0}, std::byte{0}, std::byte{7}, std::byte{9}};
  EXPECT_EQ(StreamOf({7, 9}), expected);
}

TEST(Rans, TakesHardlyMoreThanFrequenciesSay) {
  Rng rng(TestSeed());
  for (const double spread : {0.5, 3.0, 20.0, 60.0}) {
    const Symbols symbols = RandomSymbols(rng, 100'000, 256, spread);
    const double bits = BitsByFrequencies(symbols);
    const auto took = 8 * static_cast<double>(StreamOf(symbols).size());
    EXPECT_GE(took, bits * 0.99);
    // A frequency is off by half of 1 / 4096, which is most of what a rare symbol has: with 256
    // symbols less than a hundredth. And a table of 3 bytes for each, and the states.
    EXPECT_LE(took, bits * 1.01 + 8 * (3 * 256 + 2 + 4 + 16)) << "spread " << spread;
  }
}

TEST(Rans, WhatIsCutShortOrChangedGivesALineOrOtherSymbolsAndNoMore) {
  Rng rng(TestSeed());
  const Symbols symbols = RandomSymbols(rng, 500, 16, 3);
  const std::vector<std::byte> stream = StreamOf(symbols);
  Symbols back(symbols.size());
  for (std::size_t size = 0; size < stream.size(); ++size) {
    std::span<const std::byte> in = std::span(stream).first(size);
    EXPECT_EQ(TakeStream(in, back).code(), Code::kDataLoss) << size << " bytes";
  }
  int told = 0;
  for (std::size_t at = 0; at < stream.size(); ++at) {
    std::vector<std::byte> changed = stream;
    changed[at] ^= static_cast<std::byte>(1 + rng.Below(255));
    std::span<const std::byte> in = changed;
    if (!TakeStream(in, back).ok()) ++told;
  }
  // Four states must all end where the encoder began.
  EXPECT_GT(told, static_cast<int>(stream.size()) * 9 / 10);
}

}  // namespace
}  // namespace troupe
