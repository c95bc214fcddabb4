// Reads the sizes of a model from the config.json that its publisher put beside the weights on
// Hugging Face, for the families that the engine runs. Refuses what the engine could not run: a
// shape that silently lacks a part of its model would measure something else.
#pragma once

#include <string>
#include <string_view>

#include "base/status.h"
#include "forge/synth_shape.h"

namespace troupe {

// `origin` is what errors name and the shape is called after: the path of the file.
Result<ModelShape> ParseHfConfig(std::string_view json, const std::string& origin);
Result<ModelShape> ReadHfConfig(const std::string& path);

}  // namespace troupe
