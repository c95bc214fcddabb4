// Sets options by the lines of a configuration file, as a command line sets them: by their long
// names, with the same checks. Errors name the file's line.
#pragma once

#include <span>

#include "base/status.h"
#include "troupe/config_file.h"
#include "troupe/option_table.h"

namespace troupe {

// `given` are the options that the command line gave: they stay as they are. REQUIRES: no option
// has a separator.
Status ApplyConfig(const Config& config, const Options& options,
                   std::span<const Option* const> given);

}  // namespace troupe
