#include "text/jinja/printing.h"

#include <charconv>
#include <cmath>
#include <string_view>

#include "text/jinja/callable.h"
#include "text/jinja/characters.h"

namespace troupe::jinja {
namespace {

std::string Quoted(std::string_view text) {
  const bool prefers_double =
      text.find('\'') != std::string_view::npos && text.find('"') == std::string_view::npos;
  const char quote = prefers_double ? '"' : '\'';
  std::string out(1, quote);
  for (std::size_t at = 0; at < text.size();) {
    const std::size_t length = CharacterLength(text, at);
    const char32_t c = CharacterAt(text, at);
    if (c == static_cast<char32_t>(quote) || c == '\\') {
      out += '\\';
      out += static_cast<char>(c);
    } else if (c == '\n') {
      out += "\\n";
    } else if (c == '\r') {
      out += "\\r";
    } else if (c == '\t') {
      out += "\\t";
    } else if (IsPrintable(c)) {
      out += text.substr(at, length);
    } else if (c < 0x100) {
      out += fmt::format("\\x{:02x}", static_cast<unsigned>(c));
    } else if (c < 0x10000) {
      out += fmt::format("\\u{:04x}", static_cast<unsigned>(c));
    } else {
      out += fmt::format("\\U{:08x}", static_cast<unsigned>(c));
    }
    at += length;
  }
  return out + quote;
}

// Writes into one text, whose size it checks as it grows.
class Representer {
 public:
  explicit Representer(Meter& meter) : meter_(meter) {}

  MarkedText Take() { return std::move(out_); }

  Status Put(const Value& value, int depth) {
    TROUPE_RETURN_IF_ERROR(meter_.Steps());
    if (depth > kDeepestValue || out_.size() > meter_.limits().string_bytes) {
      return Error(Code::kResourceExhausted, "a value too large to print");
    }
    switch (value.kind()) {
      case Kind::kUndefined:
        return Write("Undefined");
      case Kind::kNone:
        return Write("None");
      case Kind::kBool:
        return Write(value.AsBool() ? "True" : "False");
      case Kind::kInt:
        return Write(std::to_string(value.AsInt()));
      case Kind::kFloat:
        return Write(PrintFloat(value.AsFloat()));
      case Kind::kString:
        TROUPE_RETURN_IF_ERROR(meter_.Reads(value.AsText().size()));
        out_.Append(Quoted(value.AsString()), value.AsText().Whole());
        return OkStatus();
      case Kind::kList:
        return PutList(value.AsList(), depth);
      case Kind::kDict:
        return PutDict(value.AsDict(), depth);
      case Kind::kLoop:
        return Write(fmt::format("<LoopContext {}/{}>", value.AsLoop().index + 1,
                                 value.AsLoop().items.size()));
      case Kind::kNamespace:
        return PutNamespace(value.AsNamespace(), depth);
      default:
        return Write(fmt::format("<{}>", KindName(value)));
    }
  }

 private:
  Status Write(std::string_view text) {
    out_.Append(text);
    return OkStatus();
  }

  Status PutList(const List& list, int depth) {
    using Flavour = List::Flavour;
    if (list.flavour == Flavour::kRange) return PutRange(list.bounds);
    const bool is_tuple = list.flavour == Flavour::kTuple;
    const bool is_view = list.flavour > Flavour::kRange;
    if (is_view)
      out_.Append(KindName(Value::Of(std::make_shared<const List>(List{.flavour = list.flavour}))));
    out_.Append(is_tuple ? "(" : is_view ? "([" : "[");
    for (std::size_t i = 0; i < list.items.size(); ++i) {
      if (i > 0) out_.Append(", ");
      TROUPE_RETURN_IF_ERROR(Put(list.items[i], depth + 1));
    }
    if (is_tuple && list.items.size() == 1) out_.Append(",");
    return Write(is_tuple ? ")" : is_view ? "])" : "]");
  }

  Status PutRange(const List::Bounds& range) {
    if (range.step == 1) return Write(fmt::format("range({}, {})", range.start, range.stop));
    return Write(fmt::format("range({}, {}, {})", range.start, range.stop, range.step));
  }

  Status PutDict(const Dict& dict, int depth) {
    out_.Append("{");
    for (std::size_t i = 0; i < dict.entries.size(); ++i) {
      if (i > 0) out_.Append(", ");
      TROUPE_RETURN_IF_ERROR(Put(dict.entries[i].first, depth + 1));
      out_.Append(": ");
      TROUPE_RETURN_IF_ERROR(Put(dict.entries[i].second, depth + 1));
    }
    return Write("}");
  }

  Status PutNamespace(const Namespace& names, int depth) {
    out_.Append("<Namespace {");
    for (std::size_t i = 0; i < names.members.size(); ++i) {
      if (i > 0) out_.Append(", ");
      out_.Append(Quoted(names.members[i].first) + ": ");
      TROUPE_RETURN_IF_ERROR(Put(names.members[i].second, depth + 1));
    }
    return Write("}>");
  }

  Meter& meter_;
  MarkedText out_;
};

}  // namespace

std::string PrintFloat(double number) {
  if (std::isnan(number)) return "nan";
  if (std::isinf(number)) return number > 0 ? "inf" : "-inf";
  char buffer[40];
  const auto scientific =
      std::to_chars(buffer, buffer + sizeof buffer, number, std::chars_format::scientific);
  const std::string_view written(buffer, static_cast<std::size_t>(scientific.ptr - buffer));
  const std::size_t e = written.find('e');
  int exponent = 0;
  const char* digits = written.data() + e + 1;
  if (*digits == '+') ++digits;
  std::from_chars(digits, scientific.ptr, exponent);
  if (exponent < -4 || exponent >= 16) return std::string(written);
  char plain[40];
  const auto fixed = std::to_chars(plain, plain + sizeof plain, number, std::chars_format::fixed);
  std::string text(plain, fixed.ptr);
  if (text.find('.') == std::string::npos) text += ".0";
  return text;
}

Result<MarkedText> Print(const Value& value, Meter& meter) {
  if (value.Is(Kind::kUndefined)) return MarkedText();
  if (value.Is(Kind::kString)) {
    TROUPE_RETURN_IF_ERROR(meter.Reads(value.AsText().size()));
    return value.AsText();
  }
  return Represent(value, meter);
}

Result<MarkedText> Represent(const Value& value, Meter& meter) {
  Representer representer(meter);
  TROUPE_RETURN_IF_ERROR(representer.Put(value, 0));
  MarkedText text = representer.Take();
  TROUPE_RETURN_IF_ERROR(meter.MakesString(text.size()));
  return text;
}

}  // namespace troupe::jinja
