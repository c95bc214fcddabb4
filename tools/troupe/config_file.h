// Reads the lines of a configuration file (docs/formats/serve-config.md). What the names mean is
// config_options.h's. Pure.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

#include "base/status.h"

namespace troupe {

struct ConfigLine {
  std::size_t number = 0;  // counted from 1
  std::string name, value;

  bool operator==(const ConfigLine&) const = default;
};

struct Config {
  std::string path;  // for errors
  std::vector<ConfigLine> lines;
};

// Every name and value is there; errors begin with "PATH: line N: ".
Result<Config> ParseConfig(std::string path, std::string_view text);

// "PATH: line N: why", for what is found out about a line later.
Status AtLine(const Config& config, std::size_t number, const Status& why);

}  // namespace troupe
