#include "text/jinja/value_tests.h"

#include <algorithm>
#include <iterator>

#include "text/jinja/arithmetic.h"
#include "text/jinja/compare.h"
#include "text/jinja/filters.h"
#include "text/jinja/methods.h"
#include "text/jinja/printing.h"

namespace troupe::jinja {
namespace {

using Question = bool (*)(const Value& value);

bool IsSequence(const Value& value) {
  return value.Is(Kind::kUndefined) || value.Is(Kind::kString) || value.Is(Kind::kDict) ||
         (value.Is(Kind::kList) && value.AsList().HasSubscripts());
}
bool IsIterable(const Value& value) {
  return IsSequence(value) || value.Is(Kind::kList) || value.Is(Kind::kIterator) ||
         value.Is(Kind::kLoop);
}

constexpr struct {
  std::string_view name;
  Question question;
} kQuestions[] = {
    {"defined", [](const Value& v) { return !v.Is(Kind::kUndefined); }},
    {"undefined", [](const Value& v) { return v.Is(Kind::kUndefined); }},
    {"none", [](const Value& v) { return v.Is(Kind::kNone); }},
    {"string", [](const Value& v) { return v.Is(Kind::kString); }},
    {"number", [](const Value& v) { return v.IsNumber(); }},
    {"integer", [](const Value& v) { return v.Is(Kind::kInt); }},
    {"float", [](const Value& v) { return v.Is(Kind::kFloat); }},
    {"boolean", [](const Value& v) { return v.Is(Kind::kBool); }},
    {"true", [](const Value& v) { return v.Is(Kind::kBool) && v.AsBool(); }},
    {"false", [](const Value& v) { return v.Is(Kind::kBool) && !v.AsBool(); }},
    {"mapping", [](const Value& v) { return v.Is(Kind::kDict); }},
    {"sequence", IsSequence},
    {"iterable", IsIterable},
    {"callable",
     [](const Value& v) {
       return v.Is(Kind::kCallable) || v.Is(Kind::kUndefined) || v.Is(Kind::kLoop);
     }},
    {"escaped", [](const Value&) { return false; }},
};

constexpr struct {
  std::string_view name, sign;
} kComparisons[] = {
    {"eq", "=="}, {"equalto", "=="}, {"==", "=="},         {"ne", "!="}, {"!=", "!="},
    {"lt", "<"},  {"lessthan", "<"}, {"<", "<"},           {"gt", ">"},  {">", ">"},
    {"le", "<="}, {"<=", "<="},      {"ge", ">="},         {">=", ">="}, {"greaterthan", ">"},
    {"in", "in"}, {"sameas", "is"},  {"divisibleby", "%"},
};

constexpr std::string_view kOthers[] = {"odd", "even", "upper", "lower", "filter", "test"};

// Nothing for a name that is none of `table`.
template <typename Table>
const auto* FindIn(const Table& table, std::string_view name) {
  const auto* found = std::find_if(std::begin(table), std::end(table),
                                   [&](const auto& known) { return known.name == name; });
  return found == std::end(table) ? nullptr : found;
}

Result<bool> Compare(std::string_view sign, const Value& a, const Value& b, Meter& meter) {
  if (sign == "is") return Same(a, b);
  if (sign == "in") return Contains(b, a, meter);
  if (sign == "%") {
    TROUPE_ASSIGN_OR_RETURN(const Value rest, Compute("%", a, b, meter));
    return rest.IsNumber() && rest.AsFloat() == 0;
  }
  if (sign == "==" || sign == "!=") {
    TROUPE_ASSIGN_OR_RETURN(const bool equal, Equal(a, b, meter));
    return equal == (sign == "==");
  }
  return CompareOrder(sign, a, b, meter);
}

Result<bool> IsParity(std::string_view name, const Value& value, Meter& meter) {
  TROUPE_ASSIGN_OR_RETURN(const Value rest, Compute("%", value, Value::Int(2), meter));
  return rest.IsNumber() && rest.AsFloat() == (name == "odd" ? 1 : 0);
}

Result<bool> IsCase(std::string_view name, const Value& value, Meter& meter) {
  TROUPE_ASSIGN_OR_RETURN(MarkedText text, Print(value, meter));
  TROUPE_ASSIGN_OR_RETURN(const Value answer,
                          CallMethod(Value::String(std::move(text)),
                                     name == "upper" ? "isupper" : "islower", {}, meter));
  return answer.AsBool();
}

}  // namespace

bool HasTest(std::string_view name) {
  return FindIn(kQuestions, name) != nullptr || FindIn(kComparisons, name) != nullptr ||
         std::find(std::begin(kOthers), std::end(kOthers), name) != std::end(kOthers);
}

Result<bool> ApplyTest(std::string_view name, const Value& value, const Arguments& arguments,
                       Meter& meter) {
  TROUPE_RETURN_IF_ERROR(meter.Steps());
  if (!HasTest(name)) return Error(Code::kUnimplemented, "no test '{}' is known", name);
  ArgumentReader reader(name, arguments);
  if (const auto* comparison = FindIn(kComparisons, name)) {
    const Value other = reader.Required("other");
    TROUPE_RETURN_IF_ERROR(reader.Finish());
    return Compare(comparison->sign, value, other, meter);
  }
  TROUPE_RETURN_IF_ERROR(reader.Finish());
  if (const auto* question = FindIn(kQuestions, name)) return question->question(value);
  if (name == "odd" || name == "even") return IsParity(name, value, meter);
  if (name == "upper" || name == "lower") return IsCase(name, value, meter);
  if (!value.Is(Kind::kString)) return false;
  return name == "filter" ? HasFilter(value.AsString()) : HasTest(value.AsString());
}

}  // namespace troupe::jinja
