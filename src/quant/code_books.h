// Code books: the types IQ1_* to IQ3_* store for each 4 or 8 adjacent elements the place of a word
// in a list that all blocks of the type share. A word is one digit an element. With the element's
// sign above it a digit is a code, a place in the type's table of levels (block_formats.h).
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

#include "quant/block_formats.h"
#include "quant/code_book_iq1.h"
#include "quant/code_book_iq2.h"
#include "quant/code_book_iq3.h"

namespace troupe {

template <typename Block>
constexpr const auto& BookOf() {
  if constexpr (Block::kType == TensorType::kIQ3_XXS) return kWordsIq3Xxs;
  if constexpr (Block::kType == TensorType::kIQ3_S) return kWordsIq3S;
  if constexpr (Block::kType == TensorType::kIQ2_XXS) return kWordsIq2Xxs;
  if constexpr (Block::kType == TensorType::kIQ2_XS) return kWordsIq2Xs;
  if constexpr (Block::kType == TensorType::kIQ2_S) return kWordsIq2S;
  if constexpr (Block::kType == TensorType::kIQ1_S) return kWordsIq1;
  if constexpr (Block::kType == TensorType::kIQ1_M) return kWordsIq1;
}

// Digit i of a word.
template <typename Block>
constexpr unsigned DigitOf(std::uint16_t word, std::size_t i) {
  return (word >> (Block::kDigitBits * i)) & ((1u << Block::kDigitBits) - 1);
}

// The book as kernels look words up in it, 32 bits each: digit i of four in byte i; of eight, digit
// i in the low half of byte i % 4, and the second four in the high halves.
template <typename Block>
struct WideBook {
  std::array<std::int32_t, BookOf<Block>().size()> words;
};
template <typename Block>
constexpr WideBook<Block> WidenBook() {
  WideBook<Block> wide{};
  for (std::size_t at = 0; at < wide.words.size(); ++at) {
    std::uint32_t word = 0;
    for (std::size_t i = 0; i < Block::kWordElems; ++i) {
      word |= DigitOf<Block>(BookOf<Block>()[at], i) << (8 * (i % 4) + 4 * (i / 4));
    }
    wide.words[at] = static_cast<std::int32_t>(word);
  }
  return wide;
}
template <typename Block>
alignas(64) inline constexpr WideBook<Block> kWideBook = WidenBook<Block>();

}  // namespace troupe
