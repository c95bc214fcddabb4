#include "troupe/option_value.h"

#include <cerrno>
#include <cstdlib>

namespace troupe {
namespace {

std::string TypeNames() {
  std::string names;
  for (const TensorTypeInfo& info : AllTensorTypes()) {
    if (!names.empty()) names += ", ";
    names += info.name;
  }
  return names;
}

Status NoWholeNumber(const std::string& text) {
  return InvalidArgument("'{}' found, expected a whole number", text);
}

// Whether a strto* function took all of the text.
bool TookAll(const std::string& text, const char* end) {
  return !text.empty() && errno == 0 && end == text.data() + text.size();
}

}  // namespace

Result<std::int64_t> ParseSigned(const std::string& text, std::int64_t least, std::int64_t most) {
  char* end = nullptr;
  errno = 0;
  const long long value = std::strtoll(text.c_str(), &end, 0);
  if (!TookAll(text, end) || value < least || value > most) return NoWholeNumber(text);
  return value;
}

Result<std::uint64_t> ParseUnsigned(const std::string& text, std::uint64_t most) {
  char* end = nullptr;
  errno = 0;
  const unsigned long long value = std::strtoull(text.c_str(), &end, 0);
  const bool negative = text.find('-') != std::string::npos;  // strtoull would wrap it round
  if (negative || !TookAll(text, end) || value > most) return NoWholeNumber(text);
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
  if (!type) return InvalidArgument("'{}' is no type; expected one of {}", text, TypeNames());
  value = *type;
  return OkStatus();
}

}  // namespace troupe
