#include "runtime/container_path.h"

#include <optional>

#include "gguf/split.h"

namespace troupe {

std::string ContainerPathFor(std::string_view model_path) {
  constexpr std::string_view kModel = ".gguf", kContainer = ".experts";
  if (const std::optional<SplitName> name = ParseSplitName(model_path)) {
    return name->prefix + std::string(kContainer);
  }
  if (model_path.ends_with(kModel)) model_path.remove_suffix(kModel.size());
  return std::string(model_path) + std::string(kContainer);
}

}  // namespace troupe
