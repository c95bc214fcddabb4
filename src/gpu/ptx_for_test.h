// What a test reads out of PTX: its kernels, and the operations that would not be rounded as the
// kernels' source says.
#pragma once

#include <regex>
#include <sstream>
#include <string>
#include <string_view>
#include <vector>

namespace troupe {

inline std::vector<std::string> EntriesOf(std::string_view ptx) {
  constexpr std::string_view kEntry = ".entry ";
  std::vector<std::string> names;
  for (std::size_t at = ptx.find(kEntry); at != ptx.npos; at = ptx.find(kEntry, at)) {
    at += kEntry.size();
    names.emplace_back(ptx.substr(at, ptx.find('(', at) - at));
  }
  return names;
}

// Lines outside inline assembly, in which the source's own fused operations are: fused ones, those
// that leave their rounding or contraction to a driver, approximate ones, and those that lose
// subnormal numbers.
inline std::vector<std::string> RoundedOtherwise(std::string_view ptx) {
  static const std::regex kFused(R"(^(@!?%p\d+ )?(fma|mad)\.(.*\.)?f(32|64)\s.*)");
  static const std::regex kOpen(R"(^(@!?%p\d+ )?(add|sub|mul|div)\.((?!rn\b).*\.)?f(32|64)\s.*)");
  static const std::regex kLoose(R"(^[^/]*\.(approx|full|ftz)\b.*)");
  std::vector<std::string> found;
  std::istringstream lines{std::string(ptx)};
  bool in_assembly = false;
  for (std::string line; std::getline(lines, line);) {
    line.erase(0, line.find_first_not_of(" \t"));
    if (line == "// begin inline asm") in_assembly = true;
    if (line == "// end inline asm") in_assembly = false;
    const bool fused = !in_assembly && std::regex_match(line, kFused);
    if (fused || std::regex_match(line, kOpen) || std::regex_match(line, kLoose)) {
      found.push_back(line);
    }
  }
  return found;
}

}  // namespace troupe
