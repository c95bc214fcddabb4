// The file names of a model in several parts: PREFIX-00002-of-00003.gguf. reader.h opens them.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace troupe {

struct SplitName {
  std::string prefix;      // with the folder
  std::uint32_t part = 0;  // 1 to count
  std::uint32_t count = 0;

  bool operator==(const SplitName&) const = default;
};

// Nothing if `path` is not such a name.
std::optional<SplitName> ParseSplitName(std::string_view path);
std::string FormatSplitName(const SplitName& name);

}  // namespace troupe
