// The kernels of a PTX text with what a launch of them must give: as a driver reads them.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace troupe {

struct PtxEntry {
  std::string name;
  std::vector<std::size_t> parameters;  // bytes of each
  std::uint32_t most_items = 0;         // of a group
};

// None where the text is no PTX for addresses of 64 bits.
std::vector<PtxEntry> ReadPtx(std::string_view text);

}  // namespace troupe
