// Where a model's experts container lies unless somebody says otherwise: beside the model, under
// its name. `troupe pack` writes it there, `troupe run` looks for it there.
#pragma once

#include <string>
#include <string_view>

namespace troupe {

// Where a file of that ending lies that belongs to a model: beside it, under its name.
std::string PathBeside(std::string_view model_path, std::string_view ending);

// "m.gguf" and "m-00002-of-00003.gguf" give "m.experts"; a name without .gguf gets .experts added.
std::string ContainerPathFor(std::string_view model_path);

}  // namespace troupe
