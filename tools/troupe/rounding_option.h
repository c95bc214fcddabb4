// --rounding, of the commands that quantize.
#pragma once

#include <CLI/CLI.hpp>
#include <string>

#include "quant/quantize.h"

namespace troupe {

inline void AddRoundingOption(CLI::App& app, Rounding& rounding) {
  app.add_option_function<std::string>(
         "--rounding",
         [&rounding](const std::string& text) {
           rounding = text == "plain" ? Rounding::kPlain : Rounding::kBest;
         },
         "best: the scales with the least weighted squared error; plain: those of the extremes, "
         "faster (best)")
      ->check(CLI::IsMember({"plain", "best"}))
      ->type_name("HOW");
}

}  // namespace troupe
