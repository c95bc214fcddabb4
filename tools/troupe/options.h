// Options that several commands have. A value that is refused is a usage error that says what was
// expected. What an option is at all is option_table.h's.
#pragma once

#include <cstddef>
#include <optional>
#include <string>

#include "base/tensor_type.h"
#include "troupe/option_table.h"

namespace troupe {

// Headings of the help that several commands have.
inline constexpr const char* kBasicHeading = "Options";
inline constexpr const char* kOutputHeading = "Output";

// Counts on the command line end here: what is larger is a slip.
inline constexpr std::size_t kMostTokens = std::size_t{1} << 30;

Option& AddTypeOption(Options& options, const std::string& name, TensorType& type,
                      const std::string& help);
Option& AddTypeOption(Options& options, const std::string& name, std::optional<TensorType>& type,
                      const std::string& help);
// --threads; the caller's default is every CPU this process may use.
Option& AddThreadsOption(Options& options, std::size_t& threads);
// A model to read: a file (any part of a split one), or the name of one that `troupe pull` has got.
Option& AddModelOption(Options& options, const std::string& names, std::string& path,
                       const std::string& help);
// A file that a command writes: refused before the work if it cannot be written.
Option& AddOutputOption(Options& options, const std::string& names, std::string& path,
                        const std::string& help);
// --json; the file gets the record (json_record.h).
Option& AddJsonOption(Options& options, std::string& path);

}  // namespace troupe
