// Filters whose result is a number.
#include <cctype>
#include <charconv>
#include <cmath>
#include <cstdlib>
#include <optional>
#include <string>

#include "text/jinja/arithmetic.h"
#include "text/jinja/filter_table.h"
#include "text/jinja/slices.h"
#include "text/jinja/text_edit.h"

namespace troupe::jinja {
namespace {

// Digits with single '_' between them; nothing for another text.
std::optional<std::string> WithoutUnderscores(std::string_view text) {
  std::string out;
  for (std::size_t i = 0; i < text.size(); ++i) {
    if (text[i] != '_') {
      out += text[i];
      continue;
    }
    const bool between = i > 0 && i + 1 < text.size() &&
                         std::isalnum(static_cast<unsigned char>(text[i - 1])) &&
                         std::isalnum(static_cast<unsigned char>(text[i + 1]));
    if (!between) return std::nullopt;
  }
  return out;
}

// int(text, base), float(text).
std::optional<std::int64_t> ReadInt(const MarkedText& marked, int base) {
  const MarkedText stripped = Strip(marked, std::nullopt, Sides::kBoth);
  std::string text = stripped.bytes();
  const bool negative = text.starts_with('-');
  if (negative || text.starts_with('+')) text.erase(0, 1);
  const auto prefix_is = [&](char letter) {
    return text.size() > 2 && text[0] == '0' && (text[1] | 0x20) == letter;
  };
  if ((base == 16 && prefix_is('x')) || (base == 8 && prefix_is('o')) ||
      (base == 2 && prefix_is('b'))) {
    text.erase(0, 2);
    if (text.starts_with('_')) text.erase(0, 1);
  }
  const auto digits = WithoutUnderscores(text);
  if (!digits || digits->empty() || !std::isalnum(static_cast<unsigned char>((*digits)[0])))
    return std::nullopt;
  std::int64_t number = 0;
  const std::string signed_digits = fmt::format("{}{}", negative ? "-" : "", *digits);
  const char* end = signed_digits.data() + signed_digits.size();
  const auto read = std::from_chars(signed_digits.data(), end, number, base);
  if (read.ec != std::errc() || read.ptr != end) return std::nullopt;
  return number;
}

std::optional<double> ReadFloat(const MarkedText& marked) {
  const MarkedText stripped = Strip(marked, std::nullopt, Sides::kBoth);
  auto text = WithoutUnderscores(stripped.bytes());
  if (!text) return std::nullopt;
  if (text->starts_with('+') && text->size() > 1 && (*text)[1] != '-') text->erase(0, 1);
  double number = 0;
  const char* end = text->data() + text->size();
  const auto read = std::from_chars(text->data(), end, number);
  if (text->find('(') != std::string::npos) return std::nullopt;  // nan(...) is C's alone
  if (read.ec == std::errc::result_out_of_range && read.ptr == end) {
    return std::strtod(text->c_str(), nullptr);  // infinity, or nearly nothing
  }
  if (read.ec != std::errc() || read.ptr != end) return std::nullopt;
  return number;
}

Result<Value> IntFilter(const Value& value, const Arguments& arguments, Meter&) {
  ArgumentReader reader("int", arguments);
  const Value otherwise = reader.Or("default", Value::Int(0));
  const std::int64_t base = reader.Int("base", 10);
  TROUPE_RETURN_IF_ERROR(reader.Finish());
  if (value.Is(Kind::kUndefined)) return Misused(value, "a value for int");
  if (base != 10 && base != 16 && base != 8 && base != 2) {
    return InvalidArgument("int(): base {}, expected 2, 8, 10 or 16", base);
  }
  std::optional<double> number;
  if (value.IsIntegral()) return Value::Int(value.AsInt());
  if (value.Is(Kind::kFloat)) number = value.AsFloat();
  if (value.Is(Kind::kString)) {
    if (const auto whole = ReadInt(value.AsText(), static_cast<int>(base)))
      return Value::Int(*whole);
    number = ReadFloat(value.AsText());
  }
  if (!number || !std::isfinite(*number)) {
    if (value.Is(Kind::kFloat) && std::isinf(*number)) return InvalidArgument("int() of infinity");
    return otherwise;
  }
  if (std::abs(*number) >= 9.2e18) return InvalidArgument("a whole number of more than 64 bits");
  return Value::Int(static_cast<std::int64_t>(*number));
}

Result<Value> FloatFilter(const Value& value, const Arguments& arguments, Meter&) {
  ArgumentReader reader("float", arguments);
  const Value otherwise = reader.Or("default", Value::Float(0.0));
  TROUPE_RETURN_IF_ERROR(reader.Finish());
  if (value.Is(Kind::kUndefined)) return Misused(value, "a value for float");
  if (value.IsNumber()) return Value::Float(value.AsFloat());
  if (value.Is(Kind::kString)) {
    if (const auto number = ReadFloat(value.AsText())) return Value::Float(*number);
  }
  return otherwise;
}

Result<Value> AbsFilter(const Value& value, const Arguments& arguments, Meter&) {
  TROUPE_RETURN_IF_ERROR(ArgumentReader("abs", arguments).Finish());
  if (value.Is(Kind::kFloat)) return Value::Float(std::abs(value.AsFloat()));
  if (!value.IsIntegral()) return Misused(value, "a number");
  return value.AsInt() < 0 ? Negate(value) : Value::Int(value.AsInt());
}

// Python's round(): the decimal that is nearest to the exact value, an even digit if two are.
Result<Value> RoundFilter(const Value& value, const Arguments& arguments, Meter& meter) {
  ArgumentReader reader("round", arguments);
  const std::int64_t precision = reader.Int("precision", 0);
  const Value method_value = reader.Or("method", Value::String("common"));
  TROUPE_RETURN_IF_ERROR(reader.Finish());
  const std::string method =
      method_value.Is(Kind::kString) ? method_value.AsString() : std::string();
  if (method != "common" && method != "ceil" && method != "floor") {
    return InvalidArgument("round(): method common, ceil or floor expected");
  }
  if (!value.IsNumber()) return Misused(value, "a number to round");
  if (precision < 0 || precision > 300) {
    return Error(Code::kUnimplemented, "round(): precision {}, expected 0 to 300", precision);
  }
  const double number = value.AsFloat();
  if (method == "common") {
    if (value.IsIntegral()) return Value::Int(value.AsInt());
    if (!std::isfinite(number)) return value;
    return Value::Float(std::strtod(fmt::format("{:.{}f}", number, precision).c_str(), nullptr));
  }
  TROUPE_ASSIGN_OR_RETURN(const Value scale,
                          Compute("**", Value::Int(10), Value::Int(precision), meter));
  TROUPE_ASSIGN_OR_RETURN(const Value scaled, Compute("*", value, scale, meter));
  const double whole =
      method == "ceil" ? std::ceil(scaled.AsFloat()) : std::floor(scaled.AsFloat());
  if (!(std::abs(whole) < 9.2e18)) return InvalidArgument("a whole number of more than 64 bits");
  return Compute("/", Value::Int(static_cast<std::int64_t>(whole)), scale, meter);
}

Result<Value> SumFilter(const Value& value, const Arguments& arguments, Meter& meter) {
  ArgumentReader reader("sum", arguments);
  const Value attribute = reader.Or("attribute", Value::MakeNone());
  Value total = reader.Or("start", Value::Int(0));
  TROUPE_RETURN_IF_ERROR(reader.Finish());
  if (total.Is(Kind::kString)) return Misused(total, "a number to begin with");
  TROUPE_ASSIGN_OR_RETURN(const Values items, Iterate(value, meter));
  for (Value item : items) {
    if (!attribute.Is(Kind::kNone)) {
      TROUPE_ASSIGN_OR_RETURN(item, GetPath(item, attribute, Value::MakeNone(), meter));
    }
    TROUPE_ASSIGN_OR_RETURN(total, Compute("+", total, item, meter));
  }
  return total;
}

Result<Value> LengthFilter(const Value& value, const Arguments& arguments, Meter& meter) {
  TROUPE_RETURN_IF_ERROR(ArgumentReader("length", arguments).Finish());
  TROUPE_ASSIGN_OR_RETURN(const std::int64_t length, Length(value, meter));
  return Value::Int(length);
}

constexpr NamedFilter kNumberFilters[] = {
    {"int", IntFilter}, {"float", FloatFilter},   {"abs", AbsFilter},      {"round", RoundFilter},
    {"sum", SumFilter}, {"length", LengthFilter}, {"count", LengthFilter},
};

}  // namespace

std::span<const NamedFilter> NumberFilters() { return kNumberFilters; }

}  // namespace troupe::jinja
