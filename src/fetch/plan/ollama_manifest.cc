#include "fetch/plan/ollama_manifest.h"

#include <fmt/format.h>

#include <cstddef>
#include <vector>

#include "base/json_value.h"
#include "fetch/plan/pull_record.h"

namespace troupe {
namespace {

constexpr std::string_view kModelLayer = "application/vnd.ollama.image.model";
constexpr std::string_view kDigestKind = "sha256:";

std::vector<OllamaModel> ModelLayersIn(const JsonValue& root) {
  std::vector<OllamaModel> models;
  const JsonValue layers = root.At("layers");
  for (std::size_t i = 0; i < layers.size(); ++i) {
    const JsonValue layer = layers.At(i);
    if (layer.At("mediaType").String() != kModelLayer) continue;
    OllamaModel model;
    const std::string digest = layer.At("digest").String();
    if (digest.starts_with(kDigestKind)) model.sha256 = digest.substr(kDigestKind.size());
    if (!IsSha256(model.sha256)) layer.At("digest").Fail("sha256: and 64 hexadecimal digits");
    model.bytes = layer.At("size").Count(1, kLargestModelFile);
    models.push_back(model);
  }
  return models;
}

}  // namespace

Result<OllamaModel> ReadOllamaManifest(const ModelName& name, std::string_view json) {
  TROUPE_ASSIGN_OR_RETURN(const std::vector<OllamaModel> models,
                          ReadJson<std::vector<OllamaModel>>(name.ToString(), json, ModelLayersIn));
  if (models.size() == 1) return models.front();
  return InvalidArgument("{}: its manifest has {} GGUF layers, one expected", name.ToString(),
                         models.size());
}

std::string ManifestAddress(std::string_view base, const ModelName& name) {
  return fmt::format("{}/v2/{}/{}/manifests/{}", base, name.owner, name.name, name.variant);
}

std::string BlobAddress(std::string_view base, const ModelName& name, std::string_view sha256) {
  return fmt::format("{}/v2/{}/{}/blobs/{}{}", base, name.owner, name.name, kDigestKind, sha256);
}

}  // namespace troupe
