// A repository of the hub: what its listing says, and which of its files are the model that was
// asked for. Pure.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/status.h"
#include "fetch/plan/model_name.h"

namespace troupe {

struct HubFile {
  std::string path;  // within the repository
  std::uint64_t bytes = 0;
  std::string sha256;  // of large files; empty: the hub has none

  bool operator==(const HubFile&) const = default;
};

struct HubListing {
  std::string commit;  // what the listing is of; empty: not said
  std::vector<HubFile> files;
};

// Of /api/models/OWNER/REPO/revision/main?blobs=true. Names that would leave the repository's
// folder are refused.
Result<HubListing> ReadHubListing(const std::string& name, std::string_view json);

struct HubChoice {
  std::string variant;         // "Q4_K_M", or the file's name
  std::vector<HubFile> files;  // in the order of their parts
};

// The GGUF of that type or name: all parts of it. Without one: Q4_K_M, or the only one there is.
// kNotFound and kInvalidArgument list what there is.
Result<HubChoice> ChooseHubFiles(const ModelName& name, const HubListing& listing);

// "Q4_K_M" of "sub/m-Q4_K_M-00001-of-00002.gguf"; empty: its name says no type.
std::string TypeInFileName(std::string_view path);

// `base` is "https://hub".
std::string HubListingAddress(std::string_view base, const ModelName& name);
std::string HubFileAddress(std::string_view base, const ModelName& name, std::string_view commit,
                           std::string_view path);

}  // namespace troupe
