#include "text/jinja/arguments.h"

#include <algorithm>

namespace troupe::jinja {

void ArgumentReader::Fail(std::string message) {
  if (status_.ok()) status_ = InvalidArgument("{}(): {}", function_, message);
}

const Value* ArgumentReader::Optional(std::string_view parameter) {
  const auto named = std::find_if(given_.named.begin(), given_.named.end(),
                                  [&](const auto& entry) { return entry.first == parameter; });
  const std::size_t position = position_++;
  if (position < given_.positional.size()) {
    if (named != given_.named.end()) Fail(fmt::format("'{}' is given twice", parameter));
    return &given_.positional[position];
  }
  if (named == given_.named.end()) return nullptr;
  ++taken_by_name_;
  return &named->second;
}

Value ArgumentReader::Required(std::string_view parameter) {
  const Value* given = Optional(parameter);
  if (given == nullptr) Fail(fmt::format("'{}' is missing", parameter));
  return given == nullptr ? Value() : *given;
}

Value ArgumentReader::Or(std::string_view parameter, Value otherwise) {
  const Value* given = Optional(parameter);
  return given == nullptr ? otherwise : *given;
}

bool ArgumentReader::Flag(std::string_view parameter, bool otherwise) {
  const Value* given = Optional(parameter);
  return given == nullptr ? otherwise : Truth(*given);
}

std::int64_t ArgumentReader::Int(std::string_view parameter, std::int64_t otherwise) {
  const Value* given = Optional(parameter);
  if (given == nullptr) return otherwise;
  if (given->IsIntegral()) return given->AsInt();
  Fail(fmt::format("'{}' is {}, expected a whole number", parameter, KindName(*given)));
  return otherwise;
}

const MarkedText* ArgumentReader::Text(std::string_view parameter) {
  const Value* given = Optional(parameter);
  if (given == nullptr || given->Is(Value::Kind::kNone)) return nullptr;
  if (given->Is(Value::Kind::kString)) return &given->AsText();
  Fail(fmt::format("'{}' is {}, expected a string", parameter, KindName(*given)));
  return nullptr;
}

Status ArgumentReader::Finish() const {
  TROUPE_RETURN_IF_ERROR(status_);
  if (position_ < given_.positional.size()) {
    return InvalidArgument("{}(): {} arguments, at most {} expected", function_,
                           given_.positional.size(), position_);
  }
  if (taken_by_name_ < given_.named.size()) {
    return InvalidArgument(
        "{}(): an argument by a name that it does not have, or that is given twice: '{}'",
        function_, given_.named.back().first);
  }
  return OkStatus();
}

}  // namespace troupe::jinja
