#include "fetch/plan/hub_files.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstddef>
#include <map>
#include <optional>
#include <utility>

#include "base/bytes.h"
#include "base/json_value.h"
#include "fetch/plan/pull_record.h"
#include "fetch/plan/web_address.h"
#include "gguf/split.h"

namespace troupe {
namespace {

constexpr std::size_t kMostHubFiles = 100'000;
constexpr std::string_view kUsualType = "Q4_K_M";
constexpr std::string_view kGgufEnding = ".gguf";

// What is one model: the parts of one name.
struct HubGguf {
  std::string path;  // without the part's number
  std::string type;
  std::uint32_t parts = 1;
  std::vector<HubFile> files;

  Bytes bytes() const {
    Bytes sum;
    for (const HubFile& file : files) sum += Bytes(file.bytes);
    return sum;
  }
};

std::string UpperCase(std::string_view text) {
  std::string upper(text);
  for (char& c : upper) {
    if (c >= 'a' && c <= 'z') c = static_cast<char>(c - 'a' + 'A');
  }
  return upper;
}

std::string_view FileNameOf(std::string_view path) { return path.substr(path.rfind('/') + 1); }

// Without ".gguf" and the part's number.
std::string StemOf(std::string_view path) {
  if (const std::optional<SplitName> split = ParseSplitName(path)) return split->prefix;
  return std::string(path.substr(0, path.size() - kGgufEnding.size()));
}

bool IsDigit(char c) { return c >= '0' && c <= '9'; }

// "Q4_K_M", "IQ2_XXS", "BF16", "MXFP4", also with more behind it: "Q8_0_L", "MXFP4_MOE".
bool LooksLikeType(std::string_view word) {
  for (const std::string_view whole : {"F32", "F16", "FP16", "FP32", "BF16"}) {
    if (word == whole) return true;
  }
  for (const std::string_view start : {"IQ", "TQ", "MXFP", "NVFP", "Q"}) {
    if (word.starts_with(start) && word.size() > start.size() && IsDigit(word[start.size()])) {
      return true;
    }
  }
  return false;
}

// Vision and speech parts, and what quantizers leave, are no models by themselves.
bool IsModelFile(std::string_view path) {
  if (!path.ends_with(kGgufEnding)) return false;
  const std::string name = UpperCase(FileNameOf(path));
  return !name.starts_with("MMPROJ") && name.find("IMATRIX") == std::string::npos;
}

std::vector<HubGguf> GgufsOf(const HubListing& listing) {
  std::map<std::pair<std::string, std::uint32_t>, HubGguf> found;
  for (const HubFile& file : listing.files) {
    if (!IsModelFile(file.path)) continue;
    const std::optional<SplitName> split = ParseSplitName(file.path);
    const std::uint32_t parts = split ? split->count : 1;
    HubGguf& gguf = found[{StemOf(file.path), parts}];
    gguf.path = StemOf(file.path);
    gguf.type = TypeInFileName(file.path);
    gguf.parts = parts;
    gguf.files.push_back(file);
  }
  std::vector<HubGguf> ggufs;
  for (auto& [key, gguf] : found) {
    std::ranges::sort(gguf.files, {}, &HubFile::path);
    ggufs.push_back(std::move(gguf));
  }
  return ggufs;
}

std::string ListOf(const std::vector<HubGguf>& ggufs) {
  std::vector<std::string> lines;
  for (const HubGguf& gguf : ggufs) {
    const std::string name = gguf.type.empty() ? gguf.files.front().path : gguf.type;
    lines.push_back(fmt::format("{} ({})", name, ToString(gguf.bytes())));
  }
  return fmt::format("{}", fmt::join(lines, ", "));
}

bool IsAskedFor(const HubGguf& gguf, std::string_view variant) {
  if (!variant.ends_with(kGgufEnding)) return UpperCase(gguf.type) == UpperCase(variant);
  return std::ranges::any_of(gguf.files, [&](const HubFile& file) {
    return file.path == variant || FileNameOf(file.path) == variant;
  });
}

Result<HubChoice> ChoiceOf(const ModelName& name, HubGguf gguf, std::string_view variant) {
  for (std::uint32_t part = 1; part <= gguf.parts && gguf.parts > 1; ++part) {
    const std::string path =
        FormatSplitName({.prefix = gguf.path, .part = part, .count = gguf.parts});
    if (part > gguf.files.size() || gguf.files[part - 1].path != path) {
      return DataLoss("{}: the repository has no {}", name.Repository(), path);
    }
  }
  const bool by_type = !gguf.type.empty() && !variant.ends_with(kGgufEnding);
  HubChoice choice;
  choice.variant = by_type ? gguf.type : gguf.files.front().path;
  choice.files = std::move(gguf.files);
  return choice;
}

HubFile ReadHubFile(const JsonValue& json) {
  HubFile file;
  file.path = json.At("rfilename").String();
  if (!IsSafePath(file.path)) json.At("rfilename").Fail("a path within the repository");
  const JsonValue* counted = &json;
  std::optional<JsonValue> large;
  if (json.Has("lfs") && json.At("lfs").IsObject()) {
    large = json.At("lfs");
    counted = &*large;
    file.sha256 = large->At("sha256").String();
    if (!IsSha256(file.sha256)) large->At("sha256").Fail("64 hexadecimal digits");
  }
  if (counted->Has("size")) file.bytes = counted->At("size").Count(0, kLargestModelFile);
  return file;
}

}  // namespace

std::string TypeInFileName(std::string_view path) {
  if (!path.ends_with(kGgufEnding)) return {};
  const std::string stem = UpperCase(FileNameOf(StemOf(path)));
  // The last word that looks like one, with all that follows: "m-Q4_K_M-v2" has none.
  const std::size_t separator = stem.find_last_of("-.");
  const std::size_t start = separator == std::string::npos ? 0 : separator + 1;
  const std::string type = stem.substr(start);
  if (!LooksLikeType(type)) return {};
  constexpr std::string_view kDynamic = "UD-";  // as its uploader mixes the types
  const bool dynamic = start >= kDynamic.size() && stem.substr(0, start).ends_with(kDynamic) &&
                       (start == kDynamic.size() || stem[start - kDynamic.size() - 1] == '-');
  return dynamic ? std::string(kDynamic) + type : type;
}

Result<HubListing> ReadHubListing(const std::string& name, std::string_view json) {
  return ReadJson<HubListing>(name, json, [](const JsonValue& root) {
    HubListing listing;
    if (root.Has("sha") && root.At("sha").IsString()) {
      const std::string commit = root.At("sha").String();
      if (!IsSafePath(commit)) root.At("sha").Fail("a commit");
      listing.commit = commit;
    }
    const JsonValue siblings = root.At("siblings");
    if (siblings.size() > kMostHubFiles) siblings.Fail("fewer files");
    for (std::size_t i = 0; i < siblings.size(); ++i) {
      listing.files.push_back(ReadHubFile(siblings.At(i)));
    }
    return listing;
  });
}

Result<HubChoice> ChooseHubFiles(const ModelName& name, const HubListing& listing) {
  std::vector<HubGguf> ggufs = GgufsOf(listing);
  const std::string repository = name.Repository();
  if (ggufs.empty()) {
    return Error(Code::kNotFound,
                 "{}: the repository has no GGUF file; look for one that has 'GGUF' in its name",
                 repository);
  }
  if (name.variant.empty() && ggufs.size() == 1) return ChoiceOf(name, ggufs.front(), {});
  const std::string variant = name.variant.empty() ? std::string(kUsualType) : name.variant;
  std::vector<HubGguf> fitting;
  for (const HubGguf& gguf : ggufs) {
    if (IsAskedFor(gguf, variant)) fitting.push_back(gguf);
  }
  if (fitting.size() == 1) return ChoiceOf(name, std::move(fitting.front()), variant);
  if (fitting.size() > 1) {
    std::vector<std::string> paths;
    for (const HubGguf& gguf : fitting) paths.push_back(gguf.files.front().path);
    return InvalidArgument("{} has several files of type {}: say {}:FILE with one of {}",
                           repository, variant, repository, fmt::join(paths, ", "));
  }
  if (name.variant.empty()) {
    return InvalidArgument("{} has several types: say {}:TYPE with one of {}", repository,
                           repository, ListOf(ggufs));
  }
  return Error(Code::kNotFound, "{} has no {}; there are {}", repository, variant, ListOf(ggufs));
}

std::string HubListingAddress(std::string_view base, const ModelName& name) {
  return fmt::format("{}/api/models/{}/{}/revision/main?blobs=true", base, name.owner, name.name);
}

std::string HubFileAddress(std::string_view base, const ModelName& name, std::string_view commit,
                           std::string_view path) {
  return fmt::format("{}/{}/{}/resolve/{}/{}", base, name.owner, name.name,
                     commit.empty() ? "main" : commit, EncodedPath(path));
}

}  // namespace troupe
