// Bytes as base64 text (RFC 4648, with padding), and back.
#pragma once

#include <cstddef>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace troupe {

std::string Base64(std::span<const std::byte> bytes);
// None unless it is what Base64 gives for some bytes.
std::optional<std::vector<std::byte>> BytesOfBase64(std::string_view text);

}  // namespace troupe
