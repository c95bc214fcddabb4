// The constants of GGUF that its reader and its writer share. The format: docs/formats/gguf.md.
#pragma once

#include <cstdint>
#include <string_view>

#include "base/bytes.h"

namespace troupe {

inline constexpr std::string_view kMagic = "GGUF";
inline constexpr std::uint32_t kWrittenVersion = 3;

inline constexpr std::string_view kAlignmentKey = "general.alignment";
inline constexpr std::uint64_t kDefaultAlignment = 32;

inline constexpr std::uint64_t kMaxKeyBytes = 65535;

// Troupe's own limit, not the format's: bounds what a hostile file can make the reader allocate.
// The largest vocabularies known take 20 MB.
inline constexpr Bytes kMaxHeaderBytes = 256_MiB;

// A key of one character, a type, a value of one byte.
inline constexpr std::uint64_t kLeastEntryBytes = 8 + 1 + 4 + 1;
// A name of one character, a rank of 0, a type, an offset.
inline constexpr std::uint64_t kLeastTensorBytes = 8 + 1 + 4 + 4 + 8;

}  // namespace troupe
