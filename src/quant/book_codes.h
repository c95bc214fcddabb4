// Places, signs and scales of the types with a code book (code_books.h): the one place that knows
// where their bits lie in a block. What 32 elements have of their own is a BookGroup, which panels
// store too.
#pragma once

#include <array>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <cstring>

#include "quant/block_formats.h"
#include "quant/code_books.h"

namespace troupe {

// How the signs of 32 elements are stored.
enum class SignForm {
  kWhole,   // a bit an element
  kSevens,  // a bit for seven of eight; the eighth makes the number of set ones even
  kShift,   // IQ1's: with the places
};
template <typename Block>
constexpr SignForm SignsOf() {
  constexpr TensorType kType = Block::kType;
  if constexpr (kType == TensorType::kIQ3_S || kType == TensorType::kIQ2_S) {
    return SignForm::kWhole;
  } else if constexpr (kType == TensorType::kIQ1_S || kType == TensorType::kIQ1_M) {
    return SignForm::kShift;
  } else {
    return SignForm::kSevens;
  }
}

// The places of 32 elements' words: kWords bytes with the low bits, then kHighBytes with the upper
// kHighBits of all, kHighStep bits apart. IQ2_XS has the ninth bits among the signs instead.
template <typename Block>
struct BookPlaces {
  static constexpr std::size_t kWords = 32 / Block::kWordElems;
  static constexpr int kHighBits = std::bit_width(BookOf<Block>().size() - 1) - 8;
  static constexpr bool kHighInSigns = Block::kType == TensorType::kIQ2_XS;
  static constexpr std::size_t kHighBytes =
      kHighBits == 0 || kHighInSigns ? 0 : (SignsOf<Block>() == SignForm::kShift ? 2 : 1);
  static constexpr int kHighStep = kHighInSigns                         ? 2
                                   : Block::kType == TensorType::kIQ1_M ? 4
                                                                        : kHighBits;
  static constexpr std::size_t kBytes = kWords + kHighBytes;
};

// What 32 elements have of their own in a block, the bytes in one order for all types. Byte i of
// `signs` belongs to the elements from 8 i on, its lowest bit to the first. In kSevens the
// highest bit is not a sign: the four of them hold IQ2_XS's ninth bits, or the scale of the 32
// elements.
template <typename Block>
struct BookGroup {
  std::array<std::uint8_t, BookPlaces<Block>::kBytes> places{};
  std::array<std::uint8_t, SignsOf<Block>() == SignForm::kShift ? 0 : 4> signs{};
};

// Signs of IQ2_XXS and IQ3_XXS in the file: four times 7 bits, then 4 bits of scale.
inline std::array<std::uint8_t, 4> SplitSevens(const std::uint8_t* packed) {
  std::uint32_t word;
  std::memcpy(&word, packed, sizeof word);
  std::array<std::uint8_t, 4> signs;
  for (unsigned i = 0; i < 4; ++i) {
    signs[i] = static_cast<std::uint8_t>(((word >> (7 * i)) & 127) | ((word >> (28 + i)) & 1) << 7);
  }
  return signs;
}
inline void JoinSevens(const std::array<std::uint8_t, 4>& signs, std::uint8_t* packed) {
  std::uint32_t word = 0;
  for (unsigned i = 0; i < 4; ++i) {
    word |= (signs[i] & 127u) << (7 * i) | std::uint32_t{signs[i]} >> 7 << (28 + i);
  }
  std::memcpy(packed, &word, sizeof word);
}

template <typename Block>
BookGroup<Block> ReadGroup(const Block& b, std::size_t g) {
  using Places = BookPlaces<Block>;
  BookGroup<Block> group;
  if constexpr (Block::kType == TensorType::kIQ2_XS) {
    for (std::size_t i = 0; i < 4; ++i) {
      group.places[i] = b.qs[8 * g + 2 * i];
      group.signs[i] = std::rotr(b.qs[8 * g + 2 * i + 1], 1);
    }
  } else if constexpr (Block::kType == TensorType::kIQ2_XXS) {
    std::memcpy(group.places.data(), b.qs + 8 * g, 4);
    group.signs = SplitSevens(b.qs + 8 * g + 4);
  } else {
    std::memcpy(group.places.data(), b.qs + Places::kWords * g, Places::kWords);
    if constexpr (Places::kHighBytes != 0) {
      std::memcpy(group.places.data() + Places::kWords, b.qh + Places::kHighBytes * g,
                  Places::kHighBytes);
    }
    if constexpr (Block::kType == TensorType::kIQ3_XXS) {
      group.signs = SplitSevens(b.signs + 4 * g);
    } else if constexpr (SignsOf<Block>() == SignForm::kWhole) {
      std::memcpy(group.signs.data(), b.signs + 4 * g, 4);
    }
  }
  return group;
}

template <typename Block>
void WriteGroup(const BookGroup<Block>& group, std::size_t g, Block& b) {
  using Places = BookPlaces<Block>;
  if constexpr (Block::kType == TensorType::kIQ2_XS) {
    for (std::size_t i = 0; i < 4; ++i) {
      b.qs[8 * g + 2 * i] = group.places[i];
      b.qs[8 * g + 2 * i + 1] = std::rotl(group.signs[i], 1);
    }
  } else if constexpr (Block::kType == TensorType::kIQ2_XXS) {
    std::memcpy(b.qs + 8 * g, group.places.data(), 4);
    JoinSevens(group.signs, b.qs + 8 * g + 4);
  } else {
    std::memcpy(b.qs + Places::kWords * g, group.places.data(), Places::kWords);
    if constexpr (Places::kHighBytes != 0) {
      std::memcpy(b.qh + Places::kHighBytes * g, group.places.data() + Places::kWords,
                  Places::kHighBytes);
    }
    if constexpr (Block::kType == TensorType::kIQ3_XXS) {
      JoinSevens(group.signs, b.signs + 4 * g);
    } else if constexpr (SignsOf<Block>() == SignForm::kWhole) {
      std::memcpy(b.signs + 4 * g, group.signs.data(), 4);
    }
  }
}

// The four bits that kSevens has to spare: one of each 8 elements.
template <typename Block>
unsigned SpareBits(const BookGroup<Block>& group) {
  unsigned spare = 0;
  for (unsigned i = 0; i < 4; ++i) spare |= (group.signs[i] >> 7u) << i;
  return spare;
}

// The places of a group's words and a sign bit for each of its elements.
template <typename Block>
struct WordsAndSigns {
  std::array<std::uint16_t, BookPlaces<Block>::kWords> words{};
  std::uint32_t signs = 0;
};

template <typename Block>
WordsAndSigns<Block> Decode(const BookGroup<Block>& group) {
  using Places = BookPlaces<Block>;
  constexpr SignForm kSigns = SignsOf<Block>();
  WordsAndSigns<Block> decoded;
  unsigned high = 0;
  for (std::size_t i = 0; i < Places::kHighBytes; ++i) {
    high |= unsigned{group.places[Places::kWords + i]} << (8 * i);
  }
  if constexpr (kSigns != SignForm::kShift) std::memcpy(&decoded.signs, group.signs.data(), 4);
  if constexpr (Places::kHighInSigns) high = decoded.signs >> 7 & 0x01010101u;
  for (std::size_t i = 0; i < Places::kWords; ++i) {
    const unsigned upper = Places::kHighInSigns ? high >> (8 * i) : high >> (Places::kHighStep * i);
    decoded.words[i] = static_cast<std::uint16_t>(group.places[i] |
                                                  (upper & ((1u << Places::kHighBits) - 1)) << 8);
    if constexpr (kSigns == SignForm::kShift) {
      const std::size_t bit = Block::kType == TensorType::kIQ1_M ? 4 * i + 3 : 15;
      decoded.signs |= (high >> bit & 1) * 0xffu << (8 * i);
    }
  }
  if constexpr (kSigns == SignForm::kSevens) {
    decoded.signs &= 0x7f7f7f7fu;
    for (unsigned i = 0; i < 4; ++i) {
      const auto odd = static_cast<unsigned>(std::popcount(decoded.signs >> (8 * i) & 0xff)) & 1u;
      decoded.signs |= odd << (8 * i + 7);
    }
  }
  return decoded;
}

// The way back. Signs that the type cannot store (of an odd number of negative ones, or not the
// same for all that share one) are the caller's to avoid; `scale` is stored where it lies here.
template <typename Block>
BookGroup<Block> Encode(const WordsAndSigns<Block>& decoded, unsigned stored_scale) {
  using Places = BookPlaces<Block>;
  constexpr SignForm kSigns = SignsOf<Block>();
  BookGroup<Block> group;
  unsigned high = 0, spare = stored_scale;
  if constexpr (Places::kHighInSigns) spare = 0;
  for (std::size_t i = 0; i < Places::kWords; ++i) {
    group.places[i] = static_cast<std::uint8_t>(decoded.words[i]);
    const unsigned upper = decoded.words[i] >> 8u;
    if constexpr (Places::kHighInSigns) {
      spare |= upper << i;
    } else {
      high |= upper << (Places::kHighStep * i);
    }
    if constexpr (Block::kType == TensorType::kIQ1_M) {
      high |= (decoded.signs >> (8 * i) & 1) << (4 * i + 3);
    }
  }
  if constexpr (Block::kType == TensorType::kIQ1_S) {
    high |= stored_scale << 12 | (decoded.signs & 1) << 15;
  }
  for (std::size_t i = 0; i < Places::kHighBytes; ++i) {
    group.places[Places::kWords + i] = static_cast<std::uint8_t>(high >> (8 * i));
  }
  if constexpr (kSigns != SignForm::kShift) {
    for (unsigned i = 0; i < 4; ++i) {
      const auto of_eight = static_cast<std::uint8_t>(decoded.signs >> (8 * i));
      group.signs[i] = kSigns == SignForm::kWhole
                           ? of_eight
                           : static_cast<std::uint8_t>((of_eight & 127u) | (spare >> i & 1) << 7);
    }
  }
  return group;
}

// The code of each element: its digit with its sign above.
template <typename Block>
std::array<std::uint8_t, Block::kElems> BookCodes(const Block& b) {
  std::array<std::uint8_t, Block::kElems> codes;
  for (std::size_t g = 0; g < Block::kElems / 32; ++g) {
    const WordsAndSigns<Block> decoded = Decode(ReadGroup(b, g));
    for (std::size_t i = 0; i < 32; ++i) {
      const std::uint16_t word = BookOf<Block>()[decoded.words[i / Block::kWordElems]];
      codes[32 * g + i] = static_cast<std::uint8_t>(DigitOf<Block>(word, i % Block::kWordElems) |
                                                    (decoded.signs >> i & 1) << Block::kDigitBits);
    }
  }
  return codes;
}

// The stored scale of a run of columns, 0 to 15 (IQ1: to 7).
template <typename Block>
unsigned StoredScale(const Block& b, std::size_t run) {
  if constexpr (Block::kType == TensorType::kIQ1_M) {
    return (b.scales[run / 4 * 2] | b.scales[run / 4 * 2 + 1] << 8u) >> (3 * (run % 4)) & 7u;
  } else if constexpr (requires { b.scales; }) {
    return b.scales[run / 2] >> (4 * (run % 2)) & 15u;
  } else if constexpr (Block::kType == TensorType::kIQ1_S) {
    return b.qh[2 * run + 1] >> 4 & 7u;
  } else {
    return SpareBits(ReadGroup(b, run));
  }
}

// Sets a scale that is not part of a BookGroup.
template <typename Block>
void StoreScale(unsigned stored, std::size_t run, Block& b) {
  if constexpr (Block::kType == TensorType::kIQ1_M) {
    std::uint8_t* const at = b.scales + run / 4 * 2;
    const unsigned shift = 3 * (run % 4);
    const unsigned word = ((at[0] | at[1] << 8u) & ~(7u << shift)) | stored << shift;
    at[0] = static_cast<std::uint8_t>(word);
    at[1] = static_cast<std::uint8_t>(word >> 8);
  } else if constexpr (requires { b.scales; }) {
    const unsigned shift = 4 * (run % 2);
    std::uint8_t& byte = b.scales[run / 2];
    byte = static_cast<std::uint8_t>((byte & ~(15u << shift)) | stored << shift);
  }
}

// d as a half. IQ1_M has its four nibbles above the scales.
template <typename Block>
std::uint16_t HalfOf(const Block& b) {
  if constexpr (Block::kType == TensorType::kIQ1_M) {
    unsigned half = 0;
    for (unsigned i = 0; i < 4; ++i) half |= unsigned{b.scales[2 * i + 1]} >> 4 << (4 * i);
    return static_cast<std::uint16_t>(half);
  } else {
    return b.d;
  }
}
template <typename Block>
void SetHalf(std::uint16_t half, Block& b) {
  if constexpr (Block::kType == TensorType::kIQ1_M) {
    for (unsigned i = 0; i < 4; ++i) {
      std::uint8_t& byte = b.scales[2 * i + 1];
      byte = static_cast<std::uint8_t>((byte & 15u) | (half >> (4 * i) & 15u) << 4);
    }
  } else {
    b.d = half;
  }
}

}  // namespace troupe
