#include "runtime/container_path.h"

#include <optional>

#include "gguf/split.h"

namespace troupe {

std::string PathBeside(std::string_view model_path, std::string_view ending) {
  constexpr std::string_view kModel = ".gguf";
  if (const std::optional<SplitName> name = ParseSplitName(model_path)) {
    return name->prefix + std::string(ending);
  }
  if (model_path.ends_with(kModel)) model_path.remove_suffix(kModel.size());
  return std::string(model_path) + std::string(ending);
}

std::string ContainerPathFor(std::string_view model_path) {
  return PathBeside(model_path, ".experts");
}

}  // namespace troupe
