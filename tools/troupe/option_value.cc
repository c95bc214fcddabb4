#include "troupe/option_value.h"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <cerrno>
#include <cstdlib>
#include <vector>

#include "troupe/did_you_mean.h"

namespace troupe {
namespace {

std::vector<std::string> TypeNames() {
  std::vector<std::string> names;
  for (const TensorTypeInfo& info : AllTensorTypes()) names.emplace_back(info.name);
  return names;
}

// llama.cpp's names of whole files, such as Q4_K_M, say which mix of types a file has. Most of its
// tensors have the type that the name begins with.
std::string TypeHint(const std::string& text) {
  std::string name = text;
  std::ranges::transform(name, name.begin(), [](unsigned char c) { return std::toupper(c); });
  for (const std::string_view mix : {"_S", "_M", "_L", "_XL"}) {
    if (!name.ends_with(mix)) continue;
    const std::string stem = name.substr(0, name.size() - mix.size());
    if (const auto type = TensorTypeByName(stem)) {
      return fmt::format("names a whole file's mix of types; did you mean {}?", Name(*type));
    }
  }
  const auto meant = DidYouMean(name, TypeNames());
  return meant ? fmt::format("is no type; did you mean {}?", *meant) : "is no type;";
}

Status NoWholeNumber(const std::string& text) {
  return InvalidArgument("'{}' found, expected a whole number", text);
}

// Whether a strto* function took all of the text. What is out of its range is taken, too, and errno
// says so.
bool TookText(const std::string& text, const char* end) {
  return !text.empty() && end == text.data() + text.size();
}
bool TookAll(const std::string& text, const char* end) { return TookText(text, end) && errno == 0; }

}  // namespace

Result<std::int64_t> ParseSigned(const std::string& text, std::int64_t least, std::int64_t most) {
  char* end = nullptr;
  errno = 0;
  const long long value = std::strtoll(text.c_str(), &end, 0);
  if (!TookText(text, end)) return NoWholeNumber(text);
  if (errno != 0 || value < least || value > most) {
    return InvalidArgument("'{}' found, expected a number from {} to {}", text, least, most);
  }
  return value;
}

Result<std::uint64_t> ParseUnsigned(const std::string& text, std::uint64_t most) {
  char* end = nullptr;
  errno = 0;
  const unsigned long long value = std::strtoull(text.c_str(), &end, 0);
  const bool negative = text.find('-') != std::string::npos;  // strtoull would wrap it round
  if (!TookText(text, end)) return NoWholeNumber(text);
  if (negative) return InvalidArgument("'{}' found, expected 0 or more", text);
  if (errno != 0 || value > most) {
    return InvalidArgument("'{}' found, expected at most {}", text, most);
  }
  return value;
}

Status ParseValue(const std::string& text, std::string& value) {
  value = text;
  return OkStatus();
}

Status ParseValue(const std::string& text, double& value) {
  char* end = nullptr;
  errno = 0;
  const double parsed = std::strtod(text.c_str(), &end);
  if (errno == ERANGE) errno = 0;  // too large is infinite, and too small is 0
  if (!TookAll(text, end)) return InvalidArgument("'{}' found, expected a number", text);
  value = parsed;
  return OkStatus();
}

Status ParseValue(const std::string& text, Bytes& value) {
  TROUPE_ASSIGN_OR_RETURN(value, ParseBytes(text));
  return OkStatus();
}

Status ParseValue(const std::string& text, TensorType& value) {
  const std::optional<TensorType> type = TensorTypeByName(text);
  if (!type) {
    return InvalidArgument("'{}' {} expected one of {}", text, TypeHint(text),
                           fmt::join(TypeNames(), ", "));
  }
  value = *type;
  return OkStatus();
}

Status CheckSizeHasUnit(const std::string& text) {
  constexpr Bytes kLeastMeant = 1_MiB;
  const bool bare = text.find_first_not_of("0123456789.") == std::string::npos;
  TROUPE_ASSIGN_OR_RETURN(const Bytes size, ParseBytes(text));
  if (size == Bytes()) return InvalidArgument("'{}' found, expected more than 0, as 6GiB", text);
  if (!bare || size >= kLeastMeant) return OkStatus();
  return InvalidArgument(
      "'{0}' found, which is {1}, expected a size with its unit: {0}MiB or {0}GiB?", text,
      ToString(size));
}

}  // namespace troupe
