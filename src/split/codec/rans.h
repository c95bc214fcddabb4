// Symbols of up to 8 bits in about as many bits as their own frequencies say: an entropy coder of
// order 0 (rANS, Duda 2013), with the table of frequencies before what it encodes. Nothing is lost.
// Pure; the format is docs/formats/states.md's.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "base/status.h"

namespace troupe {

// Appends a stream of these symbols; as they are, in a byte each, where that is no longer.
void AppendStream(std::span<const std::uint8_t> symbols, std::vector<std::byte>& out);

// Takes a stream of as many symbols off the front of `in`. kDataLoss if there is none: of a stream
// that was damaged and can be told from one that was not.
Status TakeStream(std::span<const std::byte>& in, std::span<std::uint8_t> symbols);

}  // namespace troupe
