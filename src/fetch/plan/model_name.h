// Names of models that others keep, as people write them: "hf.co/OWNER/REPO:Q4_K_M" on the hub,
// "olmoe:7b" in ollama's library. Pure.
#pragma once

#include <string>
#include <string_view>

#include "base/status.h"

namespace troupe {

struct ModelName {
  enum class Place { kHub, kOllama };

  Place place = Place::kHub;
  std::string owner;    // "library" for ollama's own
  std::string name;     // of the repository
  std::string variant;  // hub: a type, a file's name, or empty; ollama: the tag

  // "hf.co/OWNER/REPO:TYPE", "ollama.com/library/NAME:TAG"
  std::string ToString() const;
  // Without the variant.
  std::string Repository() const;

  bool operator==(const ModelName&) const = default;
};

// Takes addresses of the hub's pages, too. kInvalidArgument says which forms there are.
Result<ModelName> ParseModelName(std::string_view text);

}  // namespace troupe
