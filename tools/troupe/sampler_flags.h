// The options that choose tokens, shared by whatever generates.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "base/status.h"
#include "text/sampler.h"
#include "troupe/option_table.h"

namespace troupe {

class SamplerFlags {
 public:
  void AddTo(Options& options);
  // Without --seed each call draws another one; the record says which it was.
  Result<Sampling> Sampler() const;
  bool seed_is_given() const { return seed_.value_or(-1) >= 0; }

 private:
  void AddRepetition(Options& options);

  Sampling options_;
  std::optional<std::int64_t> seed_;
  std::vector<std::string> biases_;  // "306=-inf"
};

}  // namespace troupe
