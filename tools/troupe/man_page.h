// The manual page troupe(1) in roff, made from the table of options.
#pragma once

#include <string>
#include <string_view>

#include "troupe/option_table.h"

namespace troupe {

// `program` has every command as a subcommand.
std::string ManPage(const Options& program, std::string_view version);

}  // namespace troupe
