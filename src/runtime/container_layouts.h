// Holds a container's index against the model it was packed from: what comes out is how its experts
// lie in slots. The fingerprint says that the container is the model's; this that it is well made.
#pragma once

#include <cstddef>
#include <string_view>

#include "base/status.h"
#include "model/expert_layout.h"
#include "store/container_format.h"

namespace troupe {

// The model's layouts in the types of one precision of the container. Fails if a layer, an expert
// or a byte is missing or too many, so that no read from the container can miss its slot. `path`
// names the container in the message.
Result<ExpertLayouts> LayoutsIn(const ContainerIndex& index, std::size_t precision,
                                const ExpertLayouts& model, std::string_view path);

}  // namespace troupe
