#include "gpu/kernel_source.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "base/exact_exp.h"
#include "base/exact_log.h"
#include "gpu/kernel_text.h"
#include "quant/block_formats.h"
#include "quant/book_codes.h"
#include "quant/code_books.h"
#include "quant/exp_reference.h"
#include "quant/gate_reference.h"
#include "quant/panel_layout.h"

namespace troupe {
namespace {

void DefineWord(std::string& text, std::string_view name, std::string_view value) {
  text += fmt::format("#define {} {}\n", name, value);
}
void DefineCount(std::string& text, std::string_view name, std::size_t value) {
  DefineWord(text, name, fmt::format("{}u", value));
}
void DefineFloat(std::string& text, std::string_view name, float value) {
  DefineWord(text, name, fmt::format("({:a}f)", value));
}

// What the places, signs and scales of a type with a code book (quant/book_codes.h) are made of.
template <typename Block>
void DefineBook(std::string& text) {
  using Places = BookPlaces<Block>;
  const auto number = [&text](std::string_view name, int value) {
    DefineWord(text, name, fmt::format("{}", value));
  };
  std::string words;
  for (const std::int32_t word : kWideBook<Block>.words) {
    words += fmt::format("{}u, ", static_cast<std::uint32_t>(word));
  }
  DefineWord(text, "BOOK", words);
  number("BOOK_WORDS", Places::kWords);
  number("DIGIT_BITS", Block::kDigitBits);
  number("HIGH_BITS", Places::kHighBits);
  number("HIGH_BYTES", Places::kHighBytes);
  number("HIGH_STEP", Places::kHighStep);
  number("HIGH_IN_SIGNS", Places::kHighInSigns ? 1 : 0);
  number("SEVENS", SignsOf<Block>() == SignForm::kSevens ? 1 : 0);
  number("SHIFT", SignsOf<Block>() == SignForm::kShift ? 1 : 0);
  DefineCount(text, "SIGNS_AT", PanelLayout<Block>::kSigns);
  DefineFloat(text, "D_UNIT", Block::kUnit);
}

// Plain, not unsigned, where the preprocessor or a product of integers reads them.
template <typename Block>
void DefineBlock(std::string& text) {
  using Layout = PanelLayout<Block>;
  DefineWord(text, "PRODUCT_BLOCKS", "1");
  DefineWord(text, "CODE_BITS", fmt::format("{}", Layout::kBits));
  DefineWord(text, "D_BYTES", fmt::format("{}", kDBytes<Block>));
  DefineWord(text, "HAS_MIN", Block::kHasMin ? "1" : "0");
  DefineWord(text, "SCALE_BYTES", fmt::format("{}", kScaleBytes<Block>));
  DefineWord(text, "RUNS", fmt::format("{}", kScaleCols<Block> < kGroupCols ? 2 : 1));
  DefineCount(text, "RECORD_GROUPS", Layout::kGroups);
  DefineCount(text, "RECORD_BYTES", Layout::kRecordBytes);
  DefineCount(text, "MIN_AT", Layout::kMin);
  DefineCount(text, "SCALES_AT", Layout::kScales);
  DefineCount(text, "CODES_AT", Layout::kCodes);
  DefineCount(text, "GROUP_BYTES", Layout::kGroupBytes);
  static_assert(kGroupCols / kScaleCols<Block> <= 2 && Layout::kCodes % 4 == 0 &&
                Layout::kRecordBytes % 4 == 0);
  if constexpr (kHasBook<Block>) DefineBook<Block>(text);
  int offset = Block::kOffset;
  if constexpr (kHasLevels<Block>) {
    offset = -*std::min_element(Block::kLevels.begin(), Block::kLevels.end());
    std::string levels;
    for (const int level : Block::kLevels) levels += fmt::format("{}, ", level + offset);
    DefineWord(text, "LEVELS", levels);
  }
  DefineWord(text, "OFFSET", fmt::format("{}", offset));
}

void DefineDouble(std::string& text, std::string_view name, double value) {
  DefineWord(text, name, fmt::format("({:a})", value));
}
template <std::size_t kCount>
void DefineDoubles(std::string& text, std::string_view name,
                   const std::array<double, kCount>& values) {
  std::string list;
  for (const double value : values) list += fmt::format("{:a}, ", value);
  DefineWord(text, fmt::format("{}_COEFFICIENTS", name), list);
  DefineCount(text, fmt::format("{}_COUNT", name), kCount);
}

std::string Complete(std::string constants, std::string_view names,
                     std::string_view kernels = kExactKernelsText) {
  constants += names;
  constants += kernels;
  return constants;
}

}  // namespace

GpuSource ProductSource(TensorType type, std::string_view names) {
  std::string text;
  DefineCount(text, "TILE", kGpuTile);
  DefineCount(text, "SLICES", kGpuSlices);
  if (WithBlockType(type, [&]<typename Block>() { DefineBlock<Block>(text); })) {
    DefineWord(text, fmt::format("SCALES_{}", Name(type)), "1");
  } else {
    DefineWord(text, "PRODUCT_NUMBERS", "1");
    DefineWord(text, fmt::format("NUMBERS_{}", Name(type)), "1");
    DefineCount(text, "NUMBER_BYTES", RowBytes(type, 1).count());
  }
  return {.name = std::string(Name(type)), .text = Complete(std::move(text), names)};
}

GpuSource CommonSource(std::string_view names) {
  using C = ExpConstants;
  std::string text;
  DefineCount(text, "GROUP_ITEMS", kGpuGroupItems);
  DefineFloat(text, "EXP_LOWEST", C::kLowest);
  DefineFloat(text, "EXP_HIGHEST", C::kHighest);
  DefineFloat(text, "EXP_LOG2E", C::kLog2E);
  DefineFloat(text, "EXP_LN2_HIGH", C::kLn2High);
  DefineFloat(text, "EXP_LN2_LOW", C::kLn2Low);
  DefineFloat(text, "EXP_ROUND", C::kRound);
  DefineFloat(text, "EXP_C2", C::kC2);
  DefineFloat(text, "EXP_C3", C::kC3);
  DefineFloat(text, "EXP_C4", C::kC4);
  DefineFloat(text, "EXP_C5", C::kC5);
  DefineFloat(text, "EXP_C6", C::kC6);
  DefineFloat(text, "GATE_LIMIT", kGateLimit);
  DefineFloat(text, "GATE_SLOPE", kGateSlope);
  DefineFloat(text, "GELU_SLOPE", kGeluSlope);
  DefineFloat(text, "GELU_CUBE", kGeluCube);
  DefineCount(text, "FORM_SILU", static_cast<std::size_t>(GateForm::kSilu));
  DefineCount(text, "FORM_GELU", static_cast<std::size_t>(GateForm::kGelu));
  DefineCount(text, "FORM_RELU", static_cast<std::size_t>(GateForm::kRelu));
  DefineCount(text, "FORM_SQUARED_RELU", static_cast<std::size_t>(GateForm::kSquaredRelu));
  return {.name = "common", .text = Complete(std::move(text), names)};
}

GpuSource BuddySource(std::string_view names) {
  using E = ExactExpNumbers;
  using L = ExactLogNumbers;
  std::string text;
  DefineWord(text, "WITH_DOUBLES", "1");
  DefineCount(text, "BUDDY_ITEMS", kGpuBuddyItems);
  DefineCount(text, "BUDDY_EXPERTS", kGpuBuddyExperts);
  DefineDouble(text, "EXP64_LEAST", E::kLeast);
  DefineDouble(text, "EXP64_LOG2E", E::kLog2E);
  DefineDouble(text, "EXP64_LN2_HIGH", E::kLn2High);
  DefineDouble(text, "EXP64_LN2_LOW", E::kLn2Low);
  DefineDoubles(text, "EXP64", E::kCoefficients);
  DefineDouble(text, "LOG64_ROOT_OF_TWO", L::kRootOfTwo);
  DefineDouble(text, "LOG64_LN2_HIGH", L::kLn2High);
  DefineDouble(text, "LOG64_LN2_LOW", L::kLn2Low);
  DefineDoubles(text, "LOG64", L::kCoefficients);
  const auto count = [&text](std::string_view name, GpuBuddyCount place) {
    DefineCount(text, name, static_cast<std::size_t>(place));
  };
  count("BETA_CLOSED", GpuBuddyCount::kBetaClosed);
  count("TAU_CLOSED", GpuBuddyCount::kTauClosed);
  count("GAMMA_CLOSED", GpuBuddyCount::kGammaClosed);
  count("RHO_CLOSED", GpuBuddyCount::kRhoClosed);
  count("NO_LIST", GpuBuddyCount::kNoList);
  count("NONE_RESIDENT", GpuBuddyCount::kNoneResident);
  count("SUBSTITUTED", GpuBuddyCount::kSubstituted);
  return {.name = "buddies", .text = Complete(std::move(text), names, kBuddiesText)};
}

std::vector<GpuProgram> AllPrograms(std::string_view names) {
  std::vector<GpuProgram> programs = {{CommonSource(names), kCommonKernels},
                                      {BuddySource(names), kBuddyKernels}};
  for (const TensorTypeInfo& info : AllTensorTypes()) {
    programs.push_back({ProductSource(info.type, names), kProductKernels});
  }
  return programs;
}

}  // namespace troupe
