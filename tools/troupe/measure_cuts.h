// `troupe calibrate --cut`: codecs for the states that cross a cut between two layers, and what
// each code of them loses, as a table and as the file beside the model (docs/formats/cuts.md).
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "base/status.h"
#include "lab/cut_calibration.h"
#include "troupe/engine_flags.h"
#include "troupe/json_record.h"
#include "troupe/option_table.h"

namespace troupe {

class MeasureCuts {
 public:
  void AddTo(Options& options);

  bool wanted() const { return !layers_.empty(); }
  // Of the text, the last tokens: nothing may be learned from them. None if not wanted.
  std::size_t tokens() const { return wanted() ? tokens_ : 0; }

  // Refuses cuts that the model does not have: to be asked before anything that takes long.
  Status CheckModel(const EngineFlags& flags) const;

  struct Text {
    std::string name;
    std::span<const TokenId> fit_on, measure_on;
    std::optional<TokenId> begin;
  };
  // Saves them beside the cuts that the file has already before other layers of this model.
  Result<CutFile> Measure(const EngineFlags& flags, const Text& text,
                          const std::string& fingerprint, bool table) const;
  std::string path(const std::string& model) const;

  static Json Record(const CutFile& file);

 private:
  Result<PricedCut> MeasureOne(const EngineFlags& flags, std::uint32_t layer,
                               const Text& text) const;

  std::vector<std::uint32_t> layers_;
  std::size_t tokens_ = 2048, fit_tokens_ = 16'384;
  std::vector<double> percents_ = {12.5, 25, 50, 75};
  CutCalibrationOptions options_;
  std::string output_;
};

}  // namespace troupe
