// Options that several commands share, and types of values that CLI11 does not know. A value that
// cannot be parsed is a usage error that says what was expected.
#pragma once

#include <CLI/CLI.hpp>
#include <cstddef>
#include <optional>
#include <string>

#include "base/bytes.h"
#include "base/tensor_type.h"

namespace troupe {

// CLI::Range without its limits in the help, which are there to catch slips, and without its hole:
// what is no number at all is neither below nor above them.
template <typename Number>
CLI::Validator Between(Number least, Number most) {
  return CLI::Validator(
      [least, most](std::string& text) {
        Number value{};
        if (CLI::detail::lexical_cast(text, value) && value >= least && value <= most) {
          return std::string();
        }
        return fmt::format("'{}' found, expected a number from {} to {}", text, least, most);
      },
      "");
}

// Counts on the command line end here: without a limit CLI11 reads -1 as 2^64 - 1.
inline constexpr std::size_t kMostTokens = std::size_t{1} << 30;

CLI::Option* AddTypeOption(CLI::App& app, const std::string& name, TensorType& type,
                           const std::string& help);
CLI::Option* AddTypeOption(CLI::App& app, const std::string& name, std::optional<TensorType>& type,
                           const std::string& help);
// 512MiB, 6GiB, 6G, 4096.
CLI::Option* AddBytesOption(CLI::App& app, const std::string& name, Bytes& bytes,
                            const std::string& help);
// --threads; the caller's default is every CPU this process may use.
CLI::Option* AddThreadsOption(CLI::App& app, std::size_t& threads);
// --json; the file gets the record (json_record.h).
CLI::Option* AddJsonOption(CLI::App& app, std::string& path);

}  // namespace troupe
