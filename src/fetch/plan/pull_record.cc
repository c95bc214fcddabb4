#include "fetch/plan/pull_record.h"

#include <algorithm>
#include <cstddef>

#include "base/json.h"
#include "base/json_value.h"
#include "fetch/plan/model_name.h"

namespace troupe {
namespace {

constexpr std::string_view kRecordFormat = "troupe pull";
constexpr std::uint64_t kRecordVersion = 1;
constexpr std::size_t kLongestPath = 1024;
constexpr std::size_t kSha256Digits = 64;

PulledFile ReadPulledFile(const JsonValue& json) {
  PulledFile file;
  file.path = json.At("path").String();
  if (!IsSafePath(file.path)) json.At("path").Fail("a path within the folder");
  file.bytes = json.At("bytes").Count(0, kLargestModelFile);
  file.sha256 = json.At("sha256").String();
  if (!file.sha256.empty() && !IsSha256(file.sha256)) {
    json.At("sha256").Fail("64 hexadecimal digits");
  }
  return file;
}

PullRecord ReadPullRecord(const JsonValue& root) {
  if (root.At("format").String() != kRecordFormat) root.At("format").Fail("\"troupe pull\"");
  root.At("version").Count(kRecordVersion, kRecordVersion);
  PullRecord record;
  record.name = root.At("name").String();
  if (!ParseModelName(record.name).ok()) root.At("name").Fail("the name of a model");
  const JsonValue files = root.At("files");
  if (files.size() == 0) files.Fail("one file or more");
  for (std::size_t i = 0; i < files.size(); ++i) {
    record.files.push_back(ReadPulledFile(files.At(i)));
  }
  return record;
}

}  // namespace

std::string PullRecordText(const PullRecord& record) {
  Json files = Json::Array();
  for (const PulledFile& file : record.files) {
    files.push_back({{"path", file.path}, {"bytes", file.bytes}, {"sha256", file.sha256}});
  }
  Json json = {{"format", kRecordFormat}, {"version", kRecordVersion}, {"name", record.name}};
  json["files"] = std::move(files);
  return json.Dump(2) + "\n";
}

Result<PullRecord> ParsePullRecord(const std::string& name, std::string_view text) {
  return ReadJson<PullRecord>(name, text, ReadPullRecord);
}

bool IsSafePath(std::string_view path) {
  if (path.empty() || path.size() > kLongestPath || path.ends_with('/')) return false;
  if (std::ranges::any_of(path,
                          [](unsigned char c) { return c < ' ' || c == 0x7F || c == '\\'; })) {
    return false;
  }
  while (!path.empty()) {
    const std::size_t slash = std::min(path.find('/'), path.size());
    const std::string_view part = path.substr(0, slash);
    if (part.empty() || part == "." || part == "..") return false;
    path.remove_prefix(std::min(slash + 1, path.size()));
  }
  return true;
}

bool IsSha256(std::string_view text) {
  return text.size() == kSha256Digits && std::ranges::all_of(text, [](char c) {
           return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'f');
         });
}

}  // namespace troupe
