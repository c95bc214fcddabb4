// Fits a codec for the states that cross a cut of a model, and measures what its codes cost: what
// `troupe calibrate --cut` does. What is fitted and ordered on one text is measured on another. The
// first code is the exact one, which is measured as well: a model that is cut predicts the same.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <vector>

#include "base/status.h"
#include "runtime/engine.h"
#include "split/codec/cut_file.h"
#include "text/vocab.h"

namespace troupe {

struct CutCalibrationOptions {
  std::size_t window = 256;      // tokens that see each other
  std::optional<TokenId> begin;  // put before each window (BOS)
  // Of the width: ranks whose codes are measured. Those of all channels are measured always.
  std::vector<double> rank_shares = {0.125, 0.25, 0.5, 0.75};
  double task_weight = 0;  // as CutFitter's
  std::function<void(const char* what, std::size_t done, std::size_t all)> progress;
};

// For the engine of a CalibrateCut: sequences that it holds, and what is taken beside it for a
// text of that many tokens to fit on.
std::uint32_t CutCalibrationSequences(const CutCalibrationOptions& options);
Bytes CutCalibrationBytes(const ModelConfig& config, const CutCalibrationOptions& options,
                          std::size_t fitted_tokens);

// All but the text's name, which the caller knows.
Result<PricedCut> CalibrateCut(Engine& engine, std::uint32_t layer, std::span<const TokenId> fit_on,
                               std::span<const TokenId> measure_on,
                               const CutCalibrationOptions& options);

}  // namespace troupe
