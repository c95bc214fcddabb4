// `troupe calibrate --measure-quality`: what answering missing experts otherwise costs and saves,
// as a table while it is measured and as the file beside the model that --quality picks from.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "base/status.h"
#include "runtime/quality_curve.h"
#include "text/vocab.h"
#include "troupe/engine_flags.h"
#include "troupe/json_record.h"
#include "troupe/option_table.h"

namespace troupe {

class MeasureQuality {
 public:
  static constexpr std::size_t kLeastTokens = 16;

  void AddTo(Options& options);
  Status CheckUsage() const;

  bool wanted() const { return wanted_; }
  // Of the text, the last tokens: calibration has to leave them unread. None if not wanted.
  std::size_t tokens() const { return wanted_ ? tokens_ : 0; }

  struct Text {
    std::string name;
    std::span<const TokenId> ids;
    std::optional<TokenId> begin;
  };
  // Slots for the shares asked for, as far as the budget holds them, rising. Refuses shares of
  // which none leaves an expert out of memory: to be asked before anything that takes long.
  Result<std::vector<std::uint32_t>> CacheSizes(const EngineFlags& flags) const;
  // Measures with each number of slots and saves, beside the shares that the file has already if
  // those were measured alike. `buddies` is the file of the model's buddies.
  Result<QualityCurve> Measure(const EngineFlags& flags, const Text& text,
                               const std::string& fingerprint, const std::string& buddies,
                               const std::vector<std::uint32_t>& sizes, bool table) const;
  std::string path(const std::string& model) const;

  static Json Record(const QualityCurve& curve);

 private:
  static constexpr std::size_t kWindow = 256;

  bool wanted_ = false;
  std::size_t tokens_ = 2048;
  std::optional<std::size_t> window_;
  std::vector<double> percents_ = {25, 50, 75};
  std::vector<std::string> chains_;
  double most_loss_ = 10;
  std::string output_;
};

}  // namespace troupe
