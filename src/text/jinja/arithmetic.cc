#include "text/jinja/arithmetic.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "text/jinja/printing.h"
#include "text/jinja/text_edit.h"
#include "text/jinja/text_format.h"

namespace troupe::jinja {
namespace {

Status Overflow() { return InvalidArgument("a whole number of more than 64 bits"); }

// Python rounds down, C++ towards zero.
Result<Value> DivideDown(std::int64_t a, std::int64_t b, bool remainder) {
  if (b == 0) return InvalidArgument("division by zero");
  if (b == -1) {
    if (remainder) return Value::Int(0);
    if (a == std::numeric_limits<std::int64_t>::min()) return Overflow();
    return Value::Int(-a);
  }
  std::int64_t quotient = a / b;
  std::int64_t rest = a % b;
  if (rest != 0 && (rest < 0) != (b < 0)) {
    --quotient;
    rest += b;
  }
  return Value::Int(remainder ? rest : quotient);
}

Result<Value> DivideDown(double a, double b, bool remainder) {
  if (b == 0) return InvalidArgument("division by zero");
  double rest = std::fmod(a, b);
  double quotient = (a - rest) / b;
  if (rest != 0 && (rest < 0) != (b < 0)) {
    rest += b;
    quotient -= 1;
  }
  if (remainder) return Value::Float(rest == 0 ? std::copysign(0.0, b) : rest);
  if (quotient == 0) return Value::Float(std::copysign(0.0, a / b));
  const double down = std::floor(quotient);
  return Value::Float(quotient - down > 0.5 ? down + 1 : down);
}

Result<Value> IntPower(std::int64_t base, std::int64_t exponent) {
  if (exponent < 0) {
    if (base == 0) return InvalidArgument("division by zero");
    return Value::Float(std::pow(static_cast<double>(base), static_cast<double>(exponent)));
  }
  if (base == 0 || base == 1) return Value::Int(exponent == 0 ? 1 : base);
  if (base == -1) return Value::Int(exponent % 2 == 0 ? 1 : -1);
  std::int64_t power = 1;
  for (; exponent > 0; --exponent) {  // at most 63 times before it overflows
    if (__builtin_mul_overflow(power, base, &power)) return Overflow();
  }
  return Value::Int(power);
}

Result<Value> FloatPower(double base, double exponent) {
  if (base == 0 && exponent < 0) return InvalidArgument("division by zero");
  const double power = std::pow(base, exponent);
  if (std::isnan(power) && !std::isnan(base) && !std::isnan(exponent)) {
    return InvalidArgument("a power that is no real number");
  }
  if (std::isinf(power) && std::isfinite(base) && std::isfinite(exponent)) {
    return InvalidArgument("a number too large");
  }
  return Value::Float(power);
}

Result<Value> ComputeInts(std::string_view sign, std::int64_t a, std::int64_t b) {
  std::int64_t result = 0;
  if (sign == "+"   ? __builtin_add_overflow(a, b, &result)
      : sign == "-" ? __builtin_sub_overflow(a, b, &result)
                    : sign == "*" && __builtin_mul_overflow(a, b, &result)) {
    return Overflow();
  }
  if (sign == "//" || sign == "%") return DivideDown(a, b, sign == "%");
  if (sign == "**") return IntPower(a, b);
  if (sign != "/") return Value::Int(result);
  if (b == 0) return InvalidArgument("division by zero");
  return Value::Float(static_cast<double>(a) / static_cast<double>(b));
}

Result<Value> ComputeFloats(std::string_view sign, double a, double b) {
  if (sign == "+") return Value::Float(a + b);
  if (sign == "-") return Value::Float(a - b);
  if (sign == "*") return Value::Float(a * b);
  if (sign == "**") return FloatPower(a, b);
  if (sign != "/") return DivideDown(a, b, sign == "%");
  if (b == 0) return InvalidArgument("division by zero");
  return Value::Float(a / b);
}

Result<Value> Repeat(const Value& value, std::int64_t times, Meter& meter) {
  const auto count = static_cast<std::size_t>(std::max<std::int64_t>(times, 0));
  if (value.Is(Kind::kString)) {
    const MarkedText& text = value.AsText();
    if (text.empty() || count == 0) return Value::String("");
    if (count > meter.limits().string_bytes / text.size()) {
      return meter.MakesString(std::numeric_limits<std::size_t>::max());
    }
    TROUPE_RETURN_IF_ERROR(meter.MakesString(text.size() * count));
    MarkedText repeated;
    for (std::size_t i = 0; i < count; ++i) repeated.Append(text);
    return Value::String(std::move(repeated));
  }
  const List& list = value.AsList();
  if (list.items.empty() || count == 0) return MakeList({}, meter, list.flavour);
  if (count > meter.limits().list_items / list.items.size()) {
    return meter.MakesList(std::numeric_limits<std::size_t>::max());
  }
  Values items;
  for (std::size_t i = 0; i < count; ++i) {
    items.insert(items.end(), list.items.begin(), list.items.end());
  }
  return MakeList(std::move(items), meter, list.flavour);
}

Result<Value> AddTexts(const MarkedText& a, const MarkedText& b, Meter& meter) {
  const bool is_html = a.IsHtml() || b.IsHtml();
  MarkedText sum = is_html && !a.IsHtml() ? EscapeHtml(a) : a;
  sum.Append(is_html && !b.IsHtml() ? EscapeHtml(b) : b);
  TROUPE_RETURN_IF_ERROR(meter.MakesString(sum.size()));
  return Value::String(is_html ? std::move(sum).AsHtml() : std::move(sum));
}

bool IsListOrTuple(const Value& value) {
  return value.Is(Kind::kList) && value.AsList().flavour <= List::Flavour::kTuple;
}

}  // namespace

Result<Value> Compute(std::string_view sign, const Value& a, const Value& b, Meter& meter) {
  if (a.IsNumber() && b.IsNumber()) {
    if (a.IsIntegral() && b.IsIntegral()) return ComputeInts(sign, a.AsInt(), b.AsInt());
    return ComputeFloats(sign, a.AsFloat(), b.AsFloat());
  }
  if (sign == "+" && a.Is(Kind::kString) && b.Is(Kind::kString)) {
    return AddTexts(a.AsText(), b.AsText(), meter);
  }
  if (sign == "+" && IsListOrTuple(a) && IsListOrTuple(b) &&
      a.AsList().flavour == b.AsList().flavour) {
    TROUPE_RETURN_IF_ERROR(meter.MakesList(a.AsList().items.size() + b.AsList().items.size()));
    Values items = a.AsList().items;
    items.insert(items.end(), b.AsList().items.begin(), b.AsList().items.end());
    return MakeList(std::move(items), meter, a.AsList().flavour);
  }
  const auto repeats = [](const Value& value) {
    return value.Is(Kind::kString) || IsListOrTuple(value);
  };
  if (sign == "*" && repeats(a) && b.IsIntegral()) return Repeat(a, b.AsInt(), meter);
  if (sign == "*" && repeats(b) && a.IsIntegral()) return Repeat(b, a.AsInt(), meter);
  if (sign == "%" && a.Is(Kind::kString)) return FormatText(a.AsText(), b, meter);
  if (a.Is(Kind::kUndefined)) return Misused(a, fmt::format("a value for '{}'", sign));
  if (b.Is(Kind::kUndefined)) return Misused(b, fmt::format("a value for '{}'", sign));
  return InvalidArgument("'{}' between {} and {}", sign, KindName(a), KindName(b));
}

Result<Value> Negate(const Value& value) {
  if (value.Is(Kind::kFloat)) return Value::Float(-value.AsFloat());
  if (!value.IsIntegral()) return Misused(value, "a number to negate");
  if (value.AsInt() == std::numeric_limits<std::int64_t>::min()) return Overflow();
  return Value::Int(-value.AsInt());
}

Result<Value> Join(const Values& parts, Meter& meter) {
  MarkedText together;
  for (const Value& part : parts) {
    TROUPE_ASSIGN_OR_RETURN(const MarkedText text, Print(part, meter));
    TROUPE_RETURN_IF_ERROR(meter.MakesString(together.size() + text.size()));
    together.Append(text);
  }
  return Value::String(std::move(together));
}

}  // namespace troupe::jinja
