#include "split/codec/rans.h"

#include <algorithm>
#include <array>
#include <cstring>

#include "base/check.h"

namespace troupe {
namespace {

constexpr std::size_t kSymbols = 256;
constexpr std::uint16_t kAsTheyAre = 0;  // in place of a number of symbols that occur
constexpr unsigned kTotalBits = 12;
constexpr std::uint32_t kTotal = 1 << kTotalBits;  // what the frequencies of a table add up to
constexpr unsigned kWordBits = 16;
// States lie in [kLeast, kLeast << kWordBits). Several, so that one need not wait for another.
constexpr std::uint32_t kLeast = 1 << 15;
constexpr std::size_t kStates = 4;

using States = std::array<std::uint32_t, kStates>;
using Frequencies = std::array<std::uint32_t, kSymbols>;

// As shares of kTotal: none that occurs has 0.
Frequencies FrequenciesOf(std::span<const std::uint8_t> symbols) {
  std::array<std::uint64_t, kSymbols> counts{};
  for (const std::uint8_t symbol : symbols) ++counts[symbol];
  Frequencies frequencies{};
  std::uint32_t sum = 0;
  for (std::size_t s = 0; s < kSymbols; ++s) {
    if (counts[s] == 0) continue;
    const auto share =
        static_cast<std::uint32_t>((counts[s] * kTotal + symbols.size() / 2) / symbols.size());
    sum += frequencies[s] = std::max(1u, share);
  }
  // What is over or missing is the most frequent one's, for which it is the smallest share.
  while (sum != kTotal) {
    std::uint32_t& most = *std::ranges::max_element(frequencies);
    const std::uint32_t now = sum < kTotal ? most + (kTotal - sum) : most - 1;
    sum += now - most;  // modulo 2^32
    most = now;
  }
  return frequencies;
}

template <typename T>
void Append(const T& value, std::vector<std::byte>& out) {
  const auto bytes = std::as_bytes(std::span(&value, 1));
  out.insert(out.end(), bytes.begin(), bytes.end());
}

template <typename T>
bool Take(std::span<const std::byte>& in, T& value) {
  if (in.size() < sizeof value) return false;
  std::memcpy(&value, in.data(), sizeof value);
  in = in.subspan(sizeof value);
  return true;
}

// What encoding a symbol takes.
struct Step {
  std::uint32_t frequency = 0, before = 0;  // of those below it
  // (2^43 + e) / frequency, of an e below the frequency. For all x below frequency << 19 then e * x
  // is below 2^43, so that x * inverse >> 43 is x / frequency; and the product is below 2^63.
  std::uint64_t inverse = 0;
};
constexpr unsigned kInverseBits = 43;
static_assert(kLeast >> kTotalBits << kWordBits == 1 << 19);

std::array<Step, kSymbols> StepsOf(const Frequencies& frequencies) {
  std::array<Step, kSymbols> steps;
  std::uint32_t before = 0;
  for (std::size_t s = 0; s < kSymbols; ++s) {
    const std::uint32_t frequency = frequencies[s];
    if (frequency == 0) continue;
    steps[s] = {.frequency = frequency,
                .before = before,
                .inverse = ((std::uint64_t{1} << kInverseBits) + frequency - 1) / frequency};
    before += frequency;
  }
  return steps;
}

// What each of kTotal places stands for, in 32 bits: the symbol, the place among its own, and its
// frequency less 1.
std::uint32_t Slot(std::size_t symbol, std::uint32_t place, std::uint32_t frequency) {
  return static_cast<std::uint32_t>(symbol) << (2 * kTotalBits) | place << kTotalBits |
         (frequency - 1);
}

Status NoStream(const char* why) { return DataLoss("a stream of codes {}", why); }

Result<std::vector<std::uint32_t>> TakeSlots(std::span<const std::byte>& in,
                                             std::uint16_t distinct) {
  if (distinct > kSymbols) return NoStream("without a table");
  std::vector<std::uint32_t> slots;
  slots.reserve(kTotal);
  int last = -1;
  for (std::size_t i = 0; i < distinct; ++i) {
    std::uint8_t symbol = 0;
    std::uint16_t frequency = 0;
    if (!Take(in, symbol) || !Take(in, frequency) || symbol <= last || frequency < 1 ||
        frequency > kTotal - slots.size()) {
      return NoStream("whose table cannot be");
    }
    last = symbol;
    for (std::uint32_t place = 0; place < frequency; ++place) {
      slots.push_back(Slot(symbol, place, frequency));
    }
  }
  if (slots.size() != kTotal) return NoStream("whose table does not add up");
  return slots;
}

void AppendCoded(std::span<const std::uint8_t> symbols, std::vector<std::byte>& out) {
  const Frequencies frequencies = FrequenciesOf(symbols);
  Append(static_cast<std::uint16_t>(kSymbols - std::ranges::count(frequencies, 0u)), out);
  for (std::size_t s = 0; s < kSymbols; ++s) {
    if (frequencies[s] == 0) continue;
    Append(static_cast<std::uint8_t>(s), out);
    Append(static_cast<std::uint16_t>(frequencies[s]), out);
  }
  const std::array<Step, kSymbols> steps = StepsOf(frequencies);
  // The last one first: what is read goes the other way.
  std::vector<std::uint16_t> words(symbols.size());
  std::size_t at = words.size();
  States states;
  states.fill(kLeast);
  for (std::size_t i = symbols.size(); i-- > 0;) {
    const Step& step = steps[symbols[i]];
    std::uint32_t& state = states[i % kStates];
    if (state >= step.frequency << 19) {
      words[--at] = static_cast<std::uint16_t>(state);
      state >>= kWordBits;
    }
    const auto whole = static_cast<std::uint32_t>(state * step.inverse >> kInverseBits);
    state = (whole << kTotalBits) + (state - whole * step.frequency) + step.before;
  }
  const std::span<const std::uint16_t> used = std::span(words).subspan(at);
  Append(static_cast<std::uint32_t>(used.size()), out);
  Append(states, out);
  const auto bytes = std::as_bytes(used);
  out.insert(out.end(), bytes.begin(), bytes.end());
}

Status TakeCoded(std::span<const std::byte>& in, std::uint16_t distinct,
                 std::span<std::uint8_t> symbols) {
  TROUPE_ASSIGN_OR_RETURN(const std::vector<std::uint32_t> slots, TakeSlots(in, distinct));
  std::uint32_t count = 0;
  States states;
  if (!Take(in, count) || !Take(in, states) || count > symbols.size() ||
      in.size() < count * sizeof(std::uint16_t)) {
    return NoStream("that is cut short");
  }
  const auto is_one = [](std::uint32_t state) {
    return state >= kLeast && state < kLeast << kWordBits;
  };
  if (!std::ranges::all_of(states, is_one)) return NoStream("that begins as none does");
  std::vector<std::uint16_t> words(std::size_t{count} + 1);  // one that none needs
  std::memcpy(words.data(), in.data(), count * sizeof(std::uint16_t));
  in = in.subspan(count * sizeof(std::uint16_t));
  std::size_t at = 0;
  for (std::size_t i = 0; i < symbols.size(); ++i) {
    std::uint32_t& state = states[i % kStates];
    const std::uint32_t slot = slots[state & (kTotal - 1)];
    symbols[i] = static_cast<std::uint8_t>(slot >> (2 * kTotalBits));
    state =
        ((slot & (kTotal - 1)) + 1) * (state >> kTotalBits) + (slot >> kTotalBits & (kTotal - 1));
    if (state < kLeast) {
      state = state << kWordBits | words[at];
      at += at < count ? 1 : 0;
    }
  }
  // Where the encoder began, with nothing left.
  if (at != count || std::ranges::any_of(states, [](auto state) { return state != kLeast; })) {
    return NoStream("that does not end where it should");
  }
  return OkStatus();
}

}  // namespace

void AppendStream(std::span<const std::uint8_t> symbols, std::vector<std::byte>& out) {
  TROUPE_CHECK(!symbols.empty());
  const std::size_t begin = out.size();
  AppendCoded(symbols, out);
  if (out.size() - begin < sizeof kAsTheyAre + symbols.size()) return;
  out.resize(begin);
  Append(kAsTheyAre, out);
  const auto bytes = std::as_bytes(symbols);
  out.insert(out.end(), bytes.begin(), bytes.end());
}

Status TakeStream(std::span<const std::byte>& in, std::span<std::uint8_t> symbols) {
  std::uint16_t distinct = 0;
  if (!Take(in, distinct)) return NoStream("that is cut short");
  if (distinct != kAsTheyAre) return TakeCoded(in, distinct, symbols);
  if (in.size() < symbols.size()) return NoStream("that is cut short");
  std::ranges::copy(in.first(symbols.size()), std::as_writable_bytes(symbols).begin());
  in = in.subspan(symbols.size());
  return OkStatus();
}

}  // namespace troupe
