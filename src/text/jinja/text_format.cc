#include "text/jinja/text_format.h"

#include <algorithm>
#include <cmath>
#include <string>

#include "text/jinja/characters.h"
#include "text/jinja/printing.h"

namespace troupe::jinja {
namespace {

constexpr int kWidestField = 1000;

struct FieldFormat {
  bool left = false, zeros = false;
  int width = 0;
  int precision = -1;
  char type = 0;
};

// From behind the '%'; nothing for what is not known.
Result<FieldFormat> ReadField(const std::string& text, std::size_t& at) {
  FieldFormat field;
  for (; at < text.size() && (text[at] == '-' || text[at] == '0'); ++at) {
    (text[at] == '-' ? field.left : field.zeros) = true;
  }
  const auto read_number = [&] {
    int number = 0;
    for (; at < text.size() && IsDigit(static_cast<char32_t>(text[at])); ++at) {
      number = std::min(number * 10 + (text[at] - '0'), kWidestField + 1);
    }
    return number;
  };
  field.width = read_number();
  if (at < text.size() && text[at] == '.') {
    ++at;
    field.precision = read_number();
  }
  if (field.width > kWidestField || field.precision > kWidestField) {
    return InvalidArgument("a field wider than {}", kWidestField);
  }
  if (at == text.size()) return InvalidArgument("a '%' with nothing behind it");
  field.type = text[at++];
  return field;
}

Result<MarkedText> FieldText(const FieldFormat& field, const Value& value, Meter& meter) {
  switch (field.type) {
    case 's':
    case 'r': {
      TROUPE_ASSIGN_OR_RETURN(MarkedText text,
                              field.type == 's' ? Print(value, meter) : Represent(value, meter));
      if (field.precision < 0) return text;
      const auto starts = CharacterStarts(text.bytes());
      const auto kept =
          std::min<std::size_t>(starts.size() - 1, static_cast<std::size_t>(field.precision));
      return text.Slice(0, starts[kept]);
    }
    case 'd':
    case 'i': {
      if (!value.IsNumber()) return Misused(value, "a number for %d");
      const double number = value.AsFloat();
      if (value.Is(Kind::kFloat) && !(std::abs(number) < 9e18))
        return Misused(value, "a number of 64 bits");
      const std::int64_t whole =
          value.Is(Kind::kFloat) ? static_cast<std::int64_t>(number) : value.AsInt();
      return MarkedText(std::to_string(whole));
    }
    case 'f': {
      if (!value.IsNumber()) return Misused(value, "a number for %f");
      const int precision = field.precision < 0 ? 6 : field.precision;
      return MarkedText(fmt::format("{:.{}f}", value.AsFloat(), precision));
    }
    default:
      return Error(Code::kUnimplemented, "format '%{}', expected %s, %r, %d or %f", field.type);
  }
}

void Pad(const FieldFormat& field, const MarkedText& text, MarkedText& out) {
  const std::size_t length = CountCharacters(text.bytes());
  const std::size_t width = static_cast<std::size_t>(field.width);
  const std::size_t blanks = width > length ? width - length : 0;
  if (field.left) {
    out.Append(text);
    out.Append(std::string(blanks, ' '));
    return;
  }
  const bool zeros = field.zeros && field.type != 's' && field.type != 'r';
  const std::size_t sign = zeros && text.bytes()[0] == '-' ? 1 : 0;
  out.AppendSlice(text, 0, sign);
  out.Append(std::string(blanks, zeros ? '0' : ' '));
  out.AppendSlice(text, sign, text.size() - sign);
}

}  // namespace

Result<Value> FormatText(const MarkedText& format, const Value& values, Meter& meter) {
  const bool is_tuple = values.Is(Kind::kList) && values.AsList().flavour == List::Flavour::kTuple;
  const Values given = is_tuple ? values.AsList().items : Values{values};
  std::size_t used = 0;
  MarkedText out;
  const std::string& text = format.bytes();
  for (std::size_t at = 0; at < text.size();) {
    const std::size_t sign = std::min(text.find('%', at), text.size());
    out.AppendSlice(format, at, sign - at);
    at = sign;
    if (at == text.size()) break;
    TROUPE_ASSIGN_OR_RETURN(const FieldFormat field, ReadField(text, ++at));
    if (field.type == '%') {
      out.Append("%");
      continue;
    }
    if (used == given.size())
      return InvalidArgument("{} values for a format of more", given.size());
    TROUPE_ASSIGN_OR_RETURN(const MarkedText piece, FieldText(field, given[used++], meter));
    TROUPE_RETURN_IF_ERROR(meter.MakesString(out.size() + piece.size() + kWidestField));
    Pad(field, piece, out);
  }
  const bool may_be_left = !is_tuple && (values.Is(Kind::kDict) || values.Is(Kind::kList));
  if (used < given.size() && !may_be_left) {
    return InvalidArgument("{} values for a format of {}", given.size(), used);
  }
  return Value::String(std::move(out));
}

}  // namespace troupe::jinja
