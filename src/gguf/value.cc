#include "gguf/value.h"

#include <fmt/core.h>

#include <array>
#include <type_traits>

#include "base/check.h"
#include "gguf/quoted.h"

namespace troupe {

std::size_t Array::size() const {
  return std::visit([](const auto& list) { return list.size(); }, elements);
}

std::string_view TypeName(ValueType type) {
  constexpr std::array<std::string_view, kValueTypeCount> kNames = {
      "uint8", "int8",   "uint16", "int16",  "uint32", "int32",  "float32",
      "bool",  "string", "array",  "uint64", "int64",  "float64"};
  const auto number = static_cast<std::uint32_t>(type);
  TROUPE_CHECK(number < kValueTypeCount);
  return kNames[number];
}

std::string Describe(const Value& value) {
  const std::string_view type = TypeName(TypeOf(value));
  return std::visit(
      [type](const auto& v) {
        using T = std::decay_t<decltype(v)>;
        if constexpr (std::is_same_v<T, Array>) {
          return fmt::format("array of {} {}", v.size(), TypeName(v.element_type()));
        } else if constexpr (std::is_same_v<T, std::string>) {
          return fmt::format("{} {}", type, Quoted(v));
        } else {
          return fmt::format("{} {}", type, v);
        }
      },
      value);
}

}  // namespace troupe
