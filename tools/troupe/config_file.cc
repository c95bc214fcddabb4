#include "troupe/config_file.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "troupe/trimmed.h"

namespace troupe {
namespace {

// A '#' within a word is a part of it: paths and names have some.
std::string_view WithoutComment(std::string_view line) {
  for (std::size_t hash = line.find('#'); hash != line.npos; hash = line.find('#', hash + 1)) {
    if (hash == 0 || kBlanks.find(line[hash - 1]) != kBlanks.npos) return line.substr(0, hash);
  }
  return line;
}

bool IsName(std::string_view text) {
  constexpr std::string_view kLetters = "abcdefghijklmnopqrstuvwxyz";
  constexpr std::string_view kAll = "abcdefghijklmnopqrstuvwxyz0123456789-";
  return !text.empty() && kLetters.find(text.front()) != text.npos &&
         text.find_first_not_of(kAll) == text.npos;
}

Result<ConfigLine> ParseConfigLine(std::size_t number, std::string_view line) {
  const std::size_t equals = line.find('=');
  if (equals == line.npos) return InvalidArgument("found '{}', expected NAME = VALUE", line);
  const std::string_view name = Trimmed(line.substr(0, equals));
  const std::string_view value = Trimmed(line.substr(equals + 1));
  if (!IsName(name)) {
    return InvalidArgument("found '{}', expected an option's long name without its dashes", name);
  }
  if (value.empty()) return InvalidArgument("{} has no value", name);
  if (value.find('\0') != value.npos) return InvalidArgument("{} has a byte of zero", name);
  return ConfigLine{.number = number, .name = std::string(name), .value = std::string(value)};
}

}  // namespace

Status AtLine(const Config& config, std::size_t number, const Status& why) {
  return Status(why.code(), fmt::format("{}: line {}: {}", config.path, number, why.message()));
}

Result<Config> ParseConfig(std::string path, std::string_view text) {
  Config config{.path = std::move(path), .lines = {}};
  for (std::size_t number = 1; !text.empty(); ++number) {
    const std::size_t end = std::min(text.find('\n'), text.size());
    const std::string_view line = Trimmed(WithoutComment(text.substr(0, end)));
    text.remove_prefix(std::min(end + 1, text.size()));
    if (line.empty()) continue;
    Result<ConfigLine> parsed = ParseConfigLine(number, line);
    if (!parsed.ok()) return AtLine(config, number, parsed.status());
    config.lines.push_back(*std::move(parsed));
  }
  return config;
}

}  // namespace troupe
