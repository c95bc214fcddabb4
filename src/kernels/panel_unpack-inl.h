// Reads panel records (quant/panel.h): codes to a byte each, scales and mins to floats, kLanes rows
// at a time. Included once a target; simd.h says why the toggle.
#if defined(TROUPE_KERNELS_PANEL_UNPACK_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef TROUPE_KERNELS_PANEL_UNPACK_INL_H_
#undef TROUPE_KERNELS_PANEL_UNPACK_INL_H_
#else
#define TROUPE_KERNELS_PANEL_UNPACK_INL_H_
#endif

#include "kernels/panel_book-inl.h"
#include "kernels/panel_dot-inl.h"
#include "kernels/panel_lanes-inl.h"

HWY_BEFORE_NAMESPACE();
namespace troupe::HWY_NAMESPACE {

// The number of runs of columns in a group that have a scale of their own.
template <typename Block>
inline constexpr std::size_t kGroupRuns = kGroupCols / kScaleCols<Block>;

// What UnpackGroup gives for a dot: codes of at most kMost from which kOffset is to be subtracted;
// or, where the dot wants codes of 8 bits signed, these without it.
template <typename Block>
struct DotCodes {
  static constexpr int kMost = Block::kMaxCode;
  static constexpr int kOffset = Block::kOffset;
};
template <typename Block>
requires kHasLevels<Block>
struct DotCodes<Block> {
  static constexpr int kOffset = -std::ranges::min(Block::kLevels);
  static constexpr int kMost = std::ranges::max(Block::kLevels) + kOffset;
};
template <typename Block, class Dot>
inline constexpr bool kSignedHere = Dot::kSignedCodes && (DotCodes<Block>::kMost > 127);
template <typename Block, class Dot>
inline constexpr int kOffset = kSignedHere<Block, Dot> ? 0 : DotCodes<Block>::kOffset;

// The levels of a type that has a table of them, `offset` added.
struct LevelTable {
  std::uint8_t levels[16];
};
template <typename Block>
constexpr LevelTable LevelsPlus(int offset) {
  LevelTable table{};
  for (std::size_t i = 0; i < 16; ++i) {
    table.levels[i] = static_cast<std::uint8_t>(Block::kLevels[i] + offset);
  }
  return table;
}

HWY_INLINE void OrPairs(C pairs, C* codes) {
  codes[0] = OrC(codes[0], Field<2, 0, 4>(pairs));
  codes[1] = OrC(codes[1], Field<2, 2, 4>(pairs));
  codes[2] = OrC(codes[2], Field<2, 4, 4>(pairs));
  codes[3] = OrC(codes[3], Field<2, 6, 4>(pairs));
}

// Codes that are places in a table become its levels.
template <typename Block, class Dot>
HWY_INLINE void LookUpLevels(C (&codes)[kGroupChunks]) {
  alignas(16) static constexpr LevelTable kTable = LevelsPlus<Block>(kOffset<Block, Dot>);
  for (C& chunk : codes) chunk = LookUpC(kTable.levels, chunk);
}

// The 8 chunks of a group of codes, of the rows from `lane` on.
template <typename Block, class Dot>
HWY_INLINE void UnpackGroup(const std::byte* group, std::size_t lane, C (&codes)[kGroupChunks]) {
  constexpr std::size_t kBits = PanelLayout<Block>::kBits;
  const auto word = [group, lane](std::size_t i)
                        HWY_ATTR { return LoadC(group + i * kWordsBytes + lane * kChunkCols); };
  if constexpr (kHasBook<Block>) {
    ReadBookCodes<Block>(group, lane, codes);
    LookUpLevels<Block, Dot>(codes);
  } else if constexpr (kBits == 8) {
    for (std::size_t i = 0; i < kGroupChunks; ++i) {
      codes[i] = kSignedHere<Block, Dot> ? XorC(word(i), 0x80) : word(i);
    }
  } else if constexpr (kBits >= 4) {
    for (std::size_t i = 0; i < 4; ++i) {
      const C nibbles = word(i);
      codes[i] = Field<4, 0, 0>(nibbles);
      codes[i + 4] = Field<4, 4, 0>(nibbles);
    }
    if constexpr (kHasLevels<Block>) LookUpLevels<Block, Dot>(codes);
    if constexpr (kBits == 5) OrBits<4>(word(4), codes);
    if constexpr (kBits == 6) {
      OrPairs(word(4), codes);
      OrPairs(word(5), codes + 4);
    }
  } else {
    for (std::size_t i = 0; i < 2; ++i) {
      const C pairs = word(i);
      codes[4 * i] = Field<2, 0, 0>(pairs);
      codes[4 * i + 1] = Field<2, 2, 0>(pairs);
      codes[4 * i + 2] = Field<2, 4, 0>(pairs);
      codes[4 * i + 3] = Field<2, 6, 0>(pairs);
    }
    if constexpr (kBits == 3) OrBits<2>(word(2), codes);
  }
}

// The integer scales and mins of a K-quant record, for all runs of columns and all rows of a panel.
template <typename Block>
struct PackedScales {
  alignas(64) std::int8_t scale[Block::kGroups][kPanelRows];
  alignas(64) std::int8_t min[Block::kHasMin ? Block::kGroups : 1][kPanelRows];

  HWY_INLINE void Read(const std::byte* record) {
    if constexpr (Block::kType == TensorType::kIQ4_XS) {
      ReadPairsAndNibbles(record + PanelLayout<Block>::kScales);
    } else {
      ReadVectors(record + PanelLayout<Block>::kScales);
    }
  }

 private:
  // Six bytes a row do not come in fours: row by row, which the compiler makes vectors of.
  HWY_INLINE void ReadPairsAndNibbles(const std::byte* packed) {
    const auto* const bytes = reinterpret_cast<const std::uint8_t*>(packed);
    for (std::size_t run = 0; run < Block::kGroups; ++run) {
      const std::uint8_t* const pairs = bytes + run / 4 * kPanelRows;
      const std::uint8_t* const nibbles = bytes + (2 + run / 2) * kPanelRows;
      for (std::size_t row = 0; row < kPanelRows; ++row) {
        const int high = (pairs[row] >> (2 * (run % 4))) & 3;
        const int low = (nibbles[row] >> (4 * (run % 2))) & 15;
        scale[run][row] = static_cast<std::int8_t>((low | high << 4) - 32);
      }
    }
  }

  // Four runs a vector of 16 rows: byte j of the packed scales is 16 adjacent bytes.
  HWY_INLINE void ReadVectors(const std::byte* packed) {
    for (std::size_t at = 0; at < kWordsBytes; at += 4 * kLanes) {
      const auto bytes = [&](std::size_t i)
                             HWY_ATTR { return LoadC(packed + i * kWordsBytes + at); };
      const auto to = [at](std::int8_t(*runs)[kPanelRows], std::size_t i)
                          HWY_ATTR { return runs[4 * i + at / kPanelRows] + at % kPanelRows; };
      if constexpr (Block::kType == TensorType::kQ2_K) {
        for (std::size_t i = 0; i < 4; ++i) {
          StoreC(Field<4, 0, 0>(bytes(i)), to(scale, i));
          StoreC(Field<4, 4, 0>(bytes(i)), to(min, i));
        }
      } else if constexpr (Block::kType == TensorType::kQ3_K) {
        const C low = bytes(0), high = bytes(1), upper = bytes(2);
        const auto store = [&](C four_bits, C two_bits, std::size_t i) HWY_ATTR {
          StoreC(SubtractC(OrC(four_bits, two_bits), 32), to(scale, i));
        };
        store(Field<4, 0, 0>(low), Field<2, 0, 4>(upper), 0);
        store(Field<4, 0, 0>(high), Field<2, 2, 4>(upper), 1);
        store(Field<4, 4, 0>(low), Field<2, 4, 4>(upper), 2);
        store(Field<4, 4, 0>(high), Field<2, 6, 4>(upper), 3);
      } else if constexpr (Block::kType == TensorType::kQ6_K) {
        for (std::size_t i = 0; i < 4; ++i) StoreC(bytes(i), to(scale, i));
      } else {
        const C scales = bytes(0), mins = bytes(1), nibbles = bytes(2);
        StoreC(Field<6, 0, 0>(scales), to(scale, 0));
        StoreC(Field<6, 0, 0>(mins), to(min, 0));
        StoreC(OrC(Field<4, 0, 0>(nibbles), Field<2, 6, 4>(scales)), to(scale, 1));
        StoreC(OrC(Field<4, 4, 0>(nibbles), Field<2, 6, 4>(mins)), to(min, 1));
      }
    }
  }
};

// Scales and mins (as quant/panel_reference.h adds them) of the rows from `lane` on, by run of
// columns.
template <typename Block>
class RecordScales {
 public:
  explicit HWY_INLINE RecordScales(const std::byte* record) : record_(record) {
    if constexpr (kPacked) packed_.Read(record);
    if constexpr (kSplitHalves) ReadSplitHalves(record + PanelLayout<Block>::kScales, d_);
  }
  HWY_INLINE F Scale(std::size_t lane, std::size_t run) const {
    if constexpr (kHasBook<Block>) {
      const F d = Multiply(LoadHalves(HalvesOf(record_) + lane * 2), SetF(Block::kUnit));
      return Multiply(d, BookScale<Block>(record_, lane, run));
    } else if constexpr (kHasFloatScales<Block>) {
      return LoadHalvedE4M3(record_ + PanelLayout<Block>::kScales + run * kPanelRows + lane);
    } else if constexpr (sizeof(Block::d) == 1) {
      return LoadHalvedExponents(record_ + PanelLayout<Block>::kD + lane);
    } else {
      const F d = LoadHalves(record_ + PanelLayout<Block>::kD + lane * 2);
      if constexpr (!kPacked) {
        return d;
      } else {
        return Multiply(d, LoadBytes(packed_.scale[run] + lane));
      }
    }
  }
  // Zero in types without a min.
  HWY_INLINE F Min(std::size_t lane, std::size_t run) const {
    if constexpr (!Block::kHasMin) return ZeroF();
    const F m = LoadHalves(record_ + PanelLayout<Block>::kMin + lane * 2);
    if constexpr (!kPacked) {
      return m;
    } else {
      return Multiply(Multiply(SetF(-1.0f), m), LoadBytes(packed_.min[run] + lane));
    }
  }

 private:
  static constexpr bool kPacked =
      kScaleBytes<Block> != 0 && !kHasBook<Block> && !kHasFloatScales<Block>;
  static constexpr bool kSplitHalves = kHasBook<Block> && kDBytes<Block> == 0;  // IQ1_M
  struct Nothing {};

  HWY_INLINE const std::byte* HalvesOf(const std::byte* record) const {
    if constexpr (kSplitHalves) {
      return reinterpret_cast<const std::byte*>(d_);
    } else {
      return record + PanelLayout<Block>::kD;
    }
  }

  const std::byte* record_;
  std::uint16_t d_[kSplitHalves ? kPanelRows : 1];
  std::conditional_t<kPacked, PackedScales<Block>, Nothing> packed_;
};

}  // namespace troupe::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif
