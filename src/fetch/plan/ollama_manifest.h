// What ollama's registry says of a model: which of its layers is the GGUF. Pure. The template and
// the parameters beside it are left out: a GGUF has its own.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "base/status.h"
#include "fetch/plan/model_name.h"

namespace troupe {

inline constexpr std::string_view kManifestType =
    "application/vnd.docker.distribution.manifest.v2+json";

struct OllamaModel {
  std::uint64_t bytes = 0;
  std::string sha256;
};

Result<OllamaModel> ReadOllamaManifest(const ModelName& name, std::string_view json);

// `base` is "https://registry".
std::string ManifestAddress(std::string_view base, const ModelName& name);
std::string BlobAddress(std::string_view base, const ModelName& name, std::string_view sha256);

}  // namespace troupe
