// "1 token", "2 tokens": a number of things in a line for people.
#pragma once

#include <fmt/core.h>

#include <cstdint>
#include <string>
#include <string_view>

namespace troupe {

inline std::string Counted(std::uint64_t count, std::string_view thing) {
  const std::string_view plural = count == 1 ? "" : thing.ends_with('s') ? "es" : "s";
  return fmt::format("{} {}{}", count, thing, plural);
}

}  // namespace troupe
