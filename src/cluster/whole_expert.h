// Whether an expert in memory has the bytes of which a checksum was taken when its file was packed.
#pragma once

#include <cstdint>

#include "model/expert_layout.h"

namespace troupe {

// Reads all of the expert, a piece at a time.
bool HasChecksum(const ExpertLayout& layout, const Mlp& weights, std::uint64_t checksum);

}  // namespace troupe
