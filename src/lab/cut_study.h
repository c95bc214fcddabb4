// Runs a text through a model that is cut: records the rows that cross, and measures what is lost
// where others cross in their place. Teacher forcing, window by window, each from an empty cache,
// as evaluation.h has it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <vector>

#include "base/status.h"
#include "lab/compared_logits.h"
#include "lab/cut_model.h"
#include "split/codec/cut_basis.h"
#include "text/vocab.h"

namespace troupe {

struct CutText {
  std::span<const TokenId> ids;
  std::size_t window = 256;      // tokens that see each other
  std::optional<TokenId> begin;  // put before each window (BOS)
  std::function<void(std::size_t done, std::size_t all)> progress = {};  // in tokens
};

// Rows of all tokens, of the beginnings as well.
struct RecordedCut {
  std::vector<float> states;   // at the cut
  std::vector<float> outputs;  // that logits are computed from; none of a model without variants
};
// Of a model of one variant at most.
Result<RecordedCut> RecordCut(CutModel& model, const CutText& text);

// What crosses in place of rows that begin at position `first`.
using CutVariant =
    std::function<Result<std::vector<float>>(std::uint32_t first, std::span<const float> rows)>;

struct VariantFigures {
  Comparison comparison;  // of predictions, with those of the rows as they are
  // Mean over rows of what is lost: the squares of the differences over those of the numbers,
  // channels that are kept apart left out.
  double error = 0;
};

// An entry for each variant. The model has one variant more, for the rows as they are.
Result<std::vector<VariantFigures>> MeasureVariants(CutModel& model, const CutText& text,
                                                    std::span<const CutVariant> variants,
                                                    std::span<const std::uint32_t> kept);

}  // namespace troupe
