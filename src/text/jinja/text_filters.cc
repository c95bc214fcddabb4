// Filters whose result is a text.
#include <algorithm>
#include <iterator>

#include "text/jinja/characters.h"
#include "text/jinja/filter_table.h"
#include "text/jinja/json_text.h"
#include "text/jinja/printing.h"
#include "text/jinja/slices.h"
#include "text/jinja/text_edit.h"
#include "text/jinja/text_format.h"

namespace troupe::jinja {
namespace {

// A line of JSON may be indented by a hundred of them.
constexpr std::size_t kWidestIndent = 1000;

// A filter that changes what the value prints as, and takes no arguments.
template <MarkedText (*kChange)(const MarkedText&)>
Result<Value> ChangedText(const Value& value, const Arguments& arguments, Meter& meter) {
  TROUPE_RETURN_IF_ERROR(ArgumentReader("this filter", arguments).Finish());
  TROUPE_ASSIGN_OR_RETURN(const MarkedText text, Print(value, meter));
  MarkedText changed = kChange(text);
  TROUPE_RETURN_IF_ERROR(meter.MakesString(changed.size()));
  return Value::String(std::move(changed));
}

MarkedText UpperText(const MarkedText& text) { return ChangeCase(text, Case::kUpper); }
MarkedText LowerText(const MarkedText& text) { return ChangeCase(text, Case::kLower); }
MarkedText CapitalText(const MarkedText& text) { return ChangeCase(text, Case::kCapitalized); }
MarkedText SameText(const MarkedText& text) { return text; }

MarkedText SafeText(const MarkedText& text) { return MarkedText(text).AsHtml(); }
MarkedText EscapedText(const MarkedText& text) {
  return text.IsHtml() ? text : EscapeHtml(text).AsHtml();
}

Result<Value> TrimFilter(const Value& value, const Arguments& arguments, Meter& meter) {
  ArgumentReader reader("trim", arguments);
  const MarkedText* set = reader.Text("chars");
  TROUPE_RETURN_IF_ERROR(reader.Finish());
  TROUPE_ASSIGN_OR_RETURN(const MarkedText text, Print(value, meter));
  TROUPE_RETURN_IF_ERROR(meter.MakesString(text.size()));
  return Value::String(Strip(
      text, set ? std::optional<std::string_view>(set->bytes()) : std::nullopt, Sides::kBoth));
}

Result<Value> ReplaceFilter(const Value& value, const Arguments& arguments, Meter& meter) {
  ArgumentReader reader("replace", arguments);
  const Value old_value = reader.Required("old"), new_value = reader.Required("new");
  const Value count = reader.Or("count", Value::MakeNone());
  TROUPE_RETURN_IF_ERROR(reader.Finish());
  if (!count.Is(Kind::kNone) && !count.IsIntegral()) return Misused(count, "a whole number");
  TROUPE_ASSIGN_OR_RETURN(const MarkedText text, Print(value, meter));
  TROUPE_ASSIGN_OR_RETURN(const MarkedText old_part, Print(old_value, meter));
  TROUPE_ASSIGN_OR_RETURN(const MarkedText new_part, Print(new_value, meter));
  const std::int64_t most = count.Is(Kind::kNone) ? -1 : count.AsInt();
  TROUPE_ASSIGN_OR_RETURN(MarkedText replaced, Replace(text, old_part, new_part, most, meter));
  return Value::String(std::move(replaced));
}

Result<Value> JoinFilter(const Value& value, const Arguments& arguments, Meter& meter) {
  ArgumentReader reader("join", arguments);
  const Value between = reader.Or("d", Value::String(""));
  const Value attribute = reader.Or("attribute", Value::MakeNone());
  TROUPE_RETURN_IF_ERROR(reader.Finish());
  TROUPE_ASSIGN_OR_RETURN(const MarkedText separator, Print(between, meter));
  TROUPE_ASSIGN_OR_RETURN(const Values items, Iterate(value, meter));
  MarkedText joined;
  for (std::size_t i = 0; i < items.size(); ++i) {
    Value item = items[i];
    if (!attribute.Is(Kind::kNone)) {
      TROUPE_ASSIGN_OR_RETURN(item, GetPath(item, attribute, Value::MakeNone(), meter));
    }
    TROUPE_ASSIGN_OR_RETURN(const MarkedText text, Print(item, meter));
    TROUPE_RETURN_IF_ERROR(meter.Reads(text.size() + separator.size()));
    if (joined.size() + text.size() + separator.size() > meter.limits().string_bytes) {
      return meter.MakesString(joined.size() + text.size() + separator.size());
    }
    if (i > 0) joined.Append(separator);
    joined.Append(text);
  }
  TROUPE_RETURN_IF_ERROR(meter.MakesString(joined.size()));
  return Value::String(std::move(joined));
}

Result<Value> IndentFilter(const Value& value, const Arguments& arguments, Meter& meter) {
  ArgumentReader reader("indent", arguments);
  const Value width = reader.Or("width", Value::Int(4));
  const bool first = reader.Flag("first", false), blank = reader.Flag("blank", false);
  TROUPE_RETURN_IF_ERROR(reader.Finish());
  if (!value.Is(Kind::kString)) return Misused(value, "a string to indent");
  MarkedText indent;
  if (width.Is(Kind::kString)) {
    indent = width.AsText();
  } else {
    if (!width.IsIntegral()) return Misused(width, "a width, or a string to indent by");
    const auto blanks = static_cast<std::size_t>(std::max<std::int64_t>(width.AsInt(), 0));
    TROUPE_RETURN_IF_ERROR(meter.MakesString(blanks));
    indent = MarkedText(std::string(blanks, ' '));
  }
  MarkedText text = value.AsText();
  text.Append("\n");  // so that a last line that is empty counts
  const std::vector<MarkedText> lines = SplitLines(text, false);
  if (lines.size() > kMostParts) {
    return Error(Code::kResourceExhausted, "indent(): more than {} lines", kMostParts);
  }
  MarkedText out;
  for (std::size_t i = 0; i < lines.size(); ++i) {
    if (i > 0) out.Append("\n");
    if (i == 0 ? first : blank || !lines[i].empty()) out.Append(indent);
    out.Append(lines[i]);
    TROUPE_RETURN_IF_ERROR(meter.Reads(lines[i].size() + indent.size()));
    if (out.size() > meter.limits().string_bytes) break;
  }
  TROUPE_RETURN_IF_ERROR(meter.MakesString(out.size()));
  return Value::String(std::move(out));
}

Result<Value> CenterFilter(const Value& value, const Arguments& arguments, Meter& meter) {
  ArgumentReader reader("center", arguments);
  const std::int64_t width = reader.Int("width", 80);
  TROUPE_RETURN_IF_ERROR(reader.Finish());
  TROUPE_ASSIGN_OR_RETURN(const MarkedText text, Print(value, meter));
  const auto length = static_cast<std::int64_t>(CountCharacters(text.bytes()));
  const std::int64_t blanks = std::max<std::int64_t>(width - length, 0);
  TROUPE_RETURN_IF_ERROR(meter.MakesString(text.size() + static_cast<std::size_t>(blanks)));
  const std::int64_t left = blanks / 2 + (blanks & width & 1);
  MarkedText out(std::string(static_cast<std::size_t>(left), ' '));
  out.Append(text);
  out.Append(std::string(static_cast<std::size_t>(blanks - left), ' '));
  return Value::String(std::move(out));
}

Result<Value> FormatFilter(const Value& value, const Arguments& arguments, Meter& meter) {
  if (!arguments.named.empty()) {
    return Error(Code::kUnimplemented, "format(): values by name");
  }
  TROUPE_ASSIGN_OR_RETURN(const MarkedText text, Print(value, meter));
  TROUPE_ASSIGN_OR_RETURN(const Value values,
                          MakeList(arguments.positional, meter, List::Flavour::kTuple));
  return FormatText(text, values, meter);
}

Result<Value> JsonFilter(const Value& value, const Arguments& arguments, Meter& meter) {
  ArgumentReader reader("tojson", arguments);
  JsonStyle style;
  style.ascii = reader.Flag("ensure_ascii", false);
  const Value indent = reader.Or("indent", Value::MakeNone());
  const Value separators = reader.Or("separators", Value::MakeNone());
  style.sorted = reader.Flag("sort_keys", false);
  TROUPE_RETURN_IF_ERROR(reader.Finish());
  if (indent.Is(Kind::kString)) {
    style.indent = indent.AsString();
  } else if (indent.IsIntegral()) {
    const std::int64_t width = std::max<std::int64_t>(indent.AsInt(), 0);
    TROUPE_RETURN_IF_ERROR(meter.MakesString(static_cast<std::size_t>(width)));
    style.indent = std::string(static_cast<std::size_t>(width), ' ');
  } else if (!indent.Is(Kind::kNone)) {
    return Misused(indent, "a width to indent by");
  }
  if (style.indent && style.indent->size() > kWidestIndent) {
    return Error(Code::kResourceExhausted, "tojson(): an indent of {}, at most {} allowed",
                 style.indent->size(), kWidestIndent);
  }
  if (style.indent) style.item_separator = std::string(",");
  if (!separators.Is(Kind::kNone)) {
    TROUPE_ASSIGN_OR_RETURN(const Values pair, Iterate(separators, meter));
    if (pair.size() != 2 || !pair[0].Is(Kind::kString) || !pair[1].Is(Kind::kString)) {
      return InvalidArgument("tojson(): 'separators' is no pair of strings");
    }
    style.item_separator = pair[0].AsString();
    style.key_separator = pair[1].AsString();
  }
  TROUPE_ASSIGN_OR_RETURN(MarkedText text, WriteJson(value, style, meter));
  return Value::String(std::move(text));
}

constexpr NamedFilter kTextFilters[] = {
    {"upper", ChangedText<UpperText>},
    {"lower", ChangedText<LowerText>},
    {"title", ChangedText<TitleWords>},
    {"capitalize", ChangedText<CapitalText>},
    {"string", ChangedText<SameText>},
    {"safe", ChangedText<SafeText>},
    {"escape", ChangedText<EscapedText>},
    {"e", ChangedText<EscapedText>},
    {"trim", TrimFilter},
    {"replace", ReplaceFilter},
    {"join", JoinFilter},
    {"indent", IndentFilter},
    {"center", CenterFilter},
    {"format", FormatFilter},
    {"tojson", JsonFilter},
};

}  // namespace

std::span<const NamedFilter> TextFilters() { return kTextFilters; }

}  // namespace troupe::jinja
