// --rounding, of the commands that quantize.
#pragma once

#include <string>

#include "quant/quantize.h"
#include "troupe/option_table.h"

namespace troupe {

inline void AddRoundingOption(Options& options, Rounding& rounding) {
  options
      .AddParsed(
          "--rounding",
          [&rounding](const std::string& text) {
            rounding = text == "plain" ? Rounding::kPlain : Rounding::kBest;
            return OkStatus();
          },
          "best: choose the scales with the smallest weighted squared error; plain: take them from "
          "the extremes, which is faster (best)")
      .OneOf({"plain", "best"})
      .Type("HOW");
}

}  // namespace troupe
