// The disks of a scenario (docs/formats/placement.md): a part of its reader (json_value.h).
#pragma once

#include <cstdint>
#include <vector>

#include "base/json_value.h"
#include "sim/own_disk.h"

namespace troupe {

// One for each server, dealt to them in turn.
std::vector<OwnDisk> ReadDisks(const JsonValue& json, std::uint32_t servers);

}  // namespace troupe
