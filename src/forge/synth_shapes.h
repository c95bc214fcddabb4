// The two tables that synth_shape.h looks names up in.
#pragma once

#include <vector>

#include "forge/synth_shape.h"

namespace troupe {

std::vector<ModelShape> PublishedShapes();
std::vector<ModelShape> TinyShapes();

}  // namespace troupe
