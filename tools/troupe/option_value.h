// From the text of a value on the command line to the value: what an option's variable can be. The
// error says what was found and what is expected; who names the option is the caller.
#pragma once

#include <concepts>
#include <cstdint>
#include <limits>
#include <optional>
#include <string>

#include "base/bytes.h"
#include "base/status.h"
#include "base/tensor_type.h"

namespace troupe {

Result<std::int64_t> ParseSigned(const std::string& text, std::int64_t least, std::int64_t most);
Result<std::uint64_t> ParseUnsigned(const std::string& text, std::uint64_t most);

Status ParseValue(const std::string& text, std::string& value);
Status ParseValue(const std::string& text, double& value);
Status ParseValue(const std::string& text, Bytes& value);       // 512MiB, 6G, 4096
Status ParseValue(const std::string& text, TensorType& value);  // Q4_K, in any case

// Refuses a number of bytes that is too small to be meant, as `32` is where 32MiB or 32GiB was.
Status CheckSizeHasUnit(const std::string& text);

template <std::signed_integral T>
Status ParseValue(const std::string& text, T& value) {
  TROUPE_ASSIGN_OR_RETURN(
      const std::int64_t parsed,
      ParseSigned(text, std::numeric_limits<T>::min(), std::numeric_limits<T>::max()));
  value = static_cast<T>(parsed);
  return OkStatus();
}

template <std::unsigned_integral T>
Status ParseValue(const std::string& text, T& value) {
  TROUPE_ASSIGN_OR_RETURN(const std::uint64_t parsed,
                          ParseUnsigned(text, std::numeric_limits<T>::max()));
  value = static_cast<T>(parsed);
  return OkStatus();
}

template <typename T>
Status ParseValue(const std::string& text, std::optional<T>& value) {
  T parsed{};
  TROUPE_RETURN_IF_ERROR(ParseValue(text, parsed));
  value = std::move(parsed);
  return OkStatus();
}

}  // namespace troupe
