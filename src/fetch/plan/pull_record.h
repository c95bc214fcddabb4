// What is written down of a model that is got: its files, how large they are and what they hash to.
// It is there before the first byte is, so that a model that is not whole is known as such. Pure.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/status.h"

namespace troupe {

inline constexpr std::uint64_t kLargestModelFile = std::uint64_t{1} << 46;
inline constexpr std::string_view kPullRecordEnding = ".pull.json";

struct PulledFile {
  std::string path;  // within the record's folder
  std::uint64_t bytes = 0;
  std::string sha256;  // empty: nobody said

  bool operator==(const PulledFile&) const = default;
};

struct PullRecord {
  std::string name;  // ModelName::ToString
  std::vector<PulledFile> files;

  bool operator==(const PullRecord&) const = default;
};

std::string PullRecordText(const PullRecord& record);
Result<PullRecord> ParsePullRecord(const std::string& name, std::string_view text);

// Whether it stays within the folder that it is joined to, whoever made it.
bool IsSafePath(std::string_view path);
bool IsSha256(std::string_view text);  // 64 digits, in lower case

}  // namespace troupe
