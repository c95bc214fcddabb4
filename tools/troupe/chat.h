// Talking with a model in the terminal or through a pipe: a line is a message, end of input ends.
#pragma once

#include <string>

#include "base/status.h"
#include "runtime/engine.h"
#include "runtime/generator.h"

namespace troupe {

Status Chat(Engine& engine, GenerateOptions options, const std::string& system);

}  // namespace troupe
