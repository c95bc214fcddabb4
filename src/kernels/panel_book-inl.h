// Codes and scales of panels of the types with a code book (quant/code_books.h). A word is looked
// up for each row, 4 or 8 columns at a time; signs are put above its digits, and one more look-up
// makes levels of them, as in the other types that have a table. Included once a target; simd.h
// says why the toggle.
#if defined(TROUPE_KERNELS_PANEL_BOOK_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef TROUPE_KERNELS_PANEL_BOOK_INL_H_
#undef TROUPE_KERNELS_PANEL_BOOK_INL_H_
#else
#define TROUPE_KERNELS_PANEL_BOOK_INL_H_
#endif

#include <utility>

#include "kernels/panel_lanes-inl.h"
#include "quant/book_codes.h"
#include "quant/code_books.h"

HWY_BEFORE_NAMESPACE();
namespace troupe::HWY_NAMESPACE {

// A group of 32 columns of the rows from `lane` on, as stored.
template <typename Block>
struct StoredGroup {
  using Places = BookPlaces<Block>;
  static constexpr SignForm kForm = SignsOf<Block>();

  HWY_INLINE StoredGroup(const std::byte* group, std::size_t lane)
      : places(group + lane), signs(group + PanelLayout<Block>::kSigns + 4 * lane) {}

  HWY_INLINE I PlaceByte(std::size_t i) const { return LoadBytesI(places + i * kPanelRows); }

  // The upper bits of all places, those of word i from bit kFirstHigh + kHighStep * i on.
  static constexpr int kFirstHigh = Places::kHighInSigns ? 25 : 0;
  HWY_INLINE I HighBits() const {
    if constexpr (Places::kHighInSigns) {
      return LoadI(signs);
    } else if constexpr (Places::kHighBytes == 2) {
      return OrI(PlaceByte(Places::kWords), ShiftI<8>(PlaceByte(Places::kWords + 1)));
    } else if constexpr (Places::kHighBytes == 1) {
      return PlaceByte(Places::kWords);
    } else {
      return SetI(0);
    }
  }

  template <std::size_t kWord>
  HWY_INLINE I Place(I high) const {
    const I low = PlaceByte(kWord);
    if constexpr (Places::kHighBits == 0) {
      return low;
    } else {
      constexpr int kAt = kFirstHigh + Places::kHighStep * static_cast<int>(kWord);
      return OrI(low, AndI(ShiftI<8 - kAt>(high), SetI(((1 << Places::kHighBits) - 1) << 8)));
    }
  }

  // Bit c of each byte is the sign in chunk c, as of codes of 1 bit.
  HWY_INLINE C Signs() const {
    if constexpr (kForm == SignForm::kWhole) {
      return LoadC(signs);
    } else {
      // The sign of the last of eight elements, in the last byte's odd bits, is the parity of the
      // seven others: the two chunks' parities of the other bytes meet at the odd bits.
      const I word = LoadI(signs);
      const I last = AndI(ShiftI<-24>(word), SetI(0x55));
      const I chunks = XorI(XorI(word, ShiftI<-8>(word)), XorI(ShiftI<-16>(word), last));
      const I parity = AndI(XorI(chunks, ShiftI<1>(chunks)), SetI(0xaa));
      return CodesOf(OrI(AndI(word, SetI(0xffffff)), ShiftI<24>(OrI(last, parity))));
    }
  }

  const std::byte* places;
  const std::byte* signs;
};

// Digits of word kWord of the group to its chunks of codes; with the sign of IQ1.
template <typename Block, std::size_t kWord>
HWY_INLINE void LookUpDigits(const StoredGroup<Block>& stored, I high, C* codes) {
  I word = LookUpI(kWideBook<Block>.words.data(), stored.template Place<kWord>(high));
  if constexpr (Block::kWordElems == 4) {
    codes[kWord] = CodesOf(word);
  } else {
    if constexpr (SignsOf<Block>() == SignForm::kShift) {
      constexpr int kBit = Block::kType == TensorType::kIQ1_M ? 4 * kWord + 3 : 15;
      const I set = ShiftI<-31>(ShiftI<31 - kBit>(high));  // all bits or none
      word = OrI(word, AndI(set, SetI(0x44444444)));
    }
    const C digits = CodesOf(word);
    codes[2 * kWord] = Field<4, 0, 0>(digits);
    codes[2 * kWord + 1] = Field<4, 4, 0>(digits);
  }
}

template <typename Block, std::size_t... kWord>
HWY_INLINE void LookUpAllDigits(const StoredGroup<Block>& stored, C (&codes)[kGroupChunks],
                                std::index_sequence<kWord...>) {
  const I high = stored.HighBits();
  (LookUpDigits<Block, kWord>(stored, high, codes), ...);
}

// The codes of the 8 chunks of a group, places in the table of levels.
template <typename Block>
HWY_INLINE void ReadBookCodes(const std::byte* group, std::size_t lane, C (&codes)[kGroupChunks]) {
  const StoredGroup<Block> stored(group, lane);
  LookUpAllDigits<Block>(stored, codes, std::make_index_sequence<BookPlaces<Block>::kWords>());
  if constexpr (SignsOf<Block>() != SignForm::kShift) {
    OrBits<Block::kDigitBits>(stored.Signs(), codes);
  }
}

// The integer scales of a run of columns, of the rows from `lane` on.
template <typename Block>
HWY_INLINE F BookScale(const std::byte* record, std::size_t lane, std::size_t run) {
  using Layout = PanelLayout<Block>;
  const auto byte = [record, lane](std::size_t i) HWY_ATTR {
    return LoadBytesI(record + Layout::kScales + i * kPanelRows + lane);
  };
  I stored = SetI(0);
  if constexpr (Block::kType == TensorType::kIQ1_M) {
    const I two = OrI(byte(run / 4 * 2), ShiftI<8>(byte(run / 4 * 2 + 1)));
    stored = AndI(ShiftDownI(two, static_cast<int>(3 * (run % 4))), SetI(7));
  } else if constexpr (kScaleBytes<Block> != 0) {
    stored = AndI(ShiftDownI(byte(run / 2), static_cast<int>(4 * (run % 2))), SetI(15));
  } else {
    const StoredGroup<Block> group(record + Layout::kCodes + run * Layout::kGroupBytes, lane);
    if constexpr (Block::kType == TensorType::kIQ1_S) {
      stored = AndI(ShiftI<-4>(group.PlaceByte(BookPlaces<Block>::kWords + 1)), SetI(7));
    } else {  // the odd bits of the last byte of signs
      const I last = LoadI(group.signs);
      stored = OrI(OrI(AndI(ShiftI<-25>(last), SetI(1)), AndI(ShiftI<-26>(last), SetI(2))),
                   OrI(AndI(ShiftI<-27>(last), SetI(4)), AndI(ShiftI<-28>(last), SetI(8))));
    }
  }
  return ToFloat(OrI(ShiftI<1>(stored), SetI(1)));
}

// d of the 16 rows of a record of IQ1_M, which has four bits of it above each four scales.
HWY_INLINE void ReadSplitHalves(const std::byte* scales, std::uint16_t (&halves)[kPanelRows]) {
  const auto* const bytes = reinterpret_cast<const std::uint8_t*>(scales);
  for (std::size_t row = 0; row < kPanelRows; ++row) {
    unsigned half = 0;
    for (std::size_t i = 0; i < 4; ++i) {
      half |= unsigned{bytes[(2 * i + 1) * kPanelRows + row]} >> 4 << (4 * i);
    }
    halves[row] = static_cast<std::uint16_t>(half);
  }
}

}  // namespace troupe::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif
