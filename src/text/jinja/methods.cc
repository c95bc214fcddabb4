#include "text/jinja/methods.h"

#include <algorithm>
#include <iterator>

#include "text/jinja/characters.h"
#include "text/jinja/compare.h"
#include "text/jinja/slices.h"
#include "text/jinja/text_edit.h"

namespace troupe::jinja {
namespace {

using TextMethod = Result<Value> (*)(std::string_view name, const MarkedText& text,
                                     const Arguments& arguments, Meter& meter);

Result<Value> MakeTexts(std::vector<MarkedText> texts, Meter& meter) {
  if (texts.size() > kMostParts) {
    return Error(Code::kResourceExhausted, "more than {} parts of a text", kMostParts);
  }
  Values items;
  for (MarkedText& text : texts) items.push_back(Value::String(std::move(text)));
  return MakeList(std::move(items), meter);
}

Result<Value> StripMethod(std::string_view name, const MarkedText& text, const Arguments& arguments,
                          Meter&) {
  ArgumentReader reader(name, arguments);
  const MarkedText* set = reader.Text("");
  TROUPE_RETURN_IF_ERROR(reader.Finish());
  const Sides sides = name == "lstrip"   ? Sides::kLeft
                      : name == "rstrip" ? Sides::kRight
                                         : Sides::kBoth;
  return Value::String(
      Strip(text, set ? std::optional<std::string_view>(set->bytes()) : std::nullopt, sides));
}

Result<Value> SplitMethod(std::string_view name, const MarkedText& text, const Arguments& arguments,
                          Meter& meter) {
  ArgumentReader reader(name, arguments);
  const MarkedText* separator = reader.Text("sep");
  const std::int64_t most = reader.Int("maxsplit", -1);
  TROUPE_RETURN_IF_ERROR(reader.Finish());
  if (separator == nullptr) return MakeTexts(SplitAtBlanks(text, most, name == "rsplit"), meter);
  if (separator->empty()) return InvalidArgument("{}(): an empty separator", name);
  TROUPE_RETURN_IF_ERROR(meter.Searches(text.size(), separator->size()));
  return MakeTexts(SplitAt(text, separator->bytes(), most, name == "rsplit"), meter);
}

Result<Value> SplitLinesMethod(std::string_view name, const MarkedText& text,
                               const Arguments& arguments, Meter& meter) {
  ArgumentReader reader(name, arguments);
  const bool keep_ends = reader.Flag("keepends", false);
  TROUPE_RETURN_IF_ERROR(reader.Finish());
  return MakeTexts(SplitLines(text, keep_ends), meter);
}

Result<Value> CaseMethod(std::string_view name, const MarkedText& text, const Arguments& arguments,
                         Meter&) {
  TROUPE_RETURN_IF_ERROR(ArgumentReader(name, arguments).Finish());
  const Case to = name == "upper"        ? Case::kUpper
                  : name == "title"      ? Case::kTitle
                  : name == "capitalize" ? Case::kCapitalized
                                         : Case::kLower;
  return Value::String(ChangeCase(text, to));
}

Result<Value> ReplaceMethod(std::string_view name, const MarkedText& text,
                            const Arguments& arguments, Meter& meter) {
  if (!arguments.named.empty()) return InvalidArgument("replace(): no names expected");
  ArgumentReader reader(name, arguments);
  const Value old_part = reader.Required("old"), new_part = reader.Required("new");
  const std::int64_t count = reader.Int("count", -1);
  TROUPE_RETURN_IF_ERROR(reader.Finish());
  if (!old_part.Is(Kind::kString)) return Misused(old_part, "a string to replace");
  if (!new_part.Is(Kind::kString)) return Misused(new_part, "a string to put in");
  TROUPE_ASSIGN_OR_RETURN(MarkedText replaced,
                          Replace(text, old_part.AsText(), new_part.AsText(), count, meter));
  return Value::String(std::move(replaced));
}

// The characters from `start` up to `end` (slices.h), as bytes.
struct Window {
  std::size_t begin, end;
  bool exists;  // Python finds nothing, not even "", behind the end
};
Result<Window> ReadWindow(const MarkedText& text, const Value& start, const Value& end) {
  const auto starts = CharacterStarts(text.bytes());
  const auto length = static_cast<std::int64_t>(starts.size() - 1);
  const auto place = [&](const Value& value, std::int64_t otherwise) -> Result<std::int64_t> {
    if (value.Is(Kind::kNone)) return otherwise;
    if (!value.IsIntegral()) return Misused(value, "a whole number");
    const std::int64_t at = value.AsInt();
    return at < 0 ? std::max<std::int64_t>(at + length, 0) : at;
  };
  TROUPE_ASSIGN_OR_RETURN(const std::int64_t from, place(start, 0));
  TROUPE_ASSIGN_OR_RETURN(std::int64_t to, place(end, length));
  to = std::min(to, length);
  if (from > to) return Window{0, 0, false};
  return Window{starts[static_cast<std::size_t>(from)], starts[static_cast<std::size_t>(to)], true};
}

Result<Value> AffixMethod(std::string_view name, const MarkedText& text, const Arguments& arguments,
                          Meter& meter) {
  ArgumentReader reader(name, arguments);
  const Value affix = reader.Required("affix");
  const Value start = reader.Or("start", Value::MakeNone());
  const Value end = reader.Or("end", Value::MakeNone());
  TROUPE_RETURN_IF_ERROR(reader.Finish());
  Values wanted{affix};
  if (affix.Is(Kind::kList) && affix.AsList().flavour == List::Flavour::kTuple) {
    wanted = affix.AsList().items;
  }
  Window window{0, text.size(), true};
  if (!start.Is(Kind::kNone) || !end.Is(Kind::kNone)) {
    TROUPE_RETURN_IF_ERROR(meter.Reads(text.size()));
    TROUPE_ASSIGN_OR_RETURN(window, ReadWindow(text, start, end));
  }
  const std::string_view seen =
      std::string_view(text.bytes()).substr(window.begin, window.end - window.begin);
  bool found = false;
  for (const Value& one : wanted) {
    if (!one.Is(Kind::kString)) return Misused(one, "a string, or a tuple of them");
    found = found || (window.exists && (name == "startswith" ? seen.starts_with(one.AsString())
                                                             : seen.ends_with(one.AsString())));
  }
  return Value::Bool(found);
}

Result<Value> FindMethod(std::string_view name, const MarkedText& text, const Arguments& arguments,
                         Meter& meter) {
  ArgumentReader reader(name, arguments);
  const Value part = reader.Required("sub");
  const Value start = reader.Or("start", Value::MakeNone());
  const Value end = reader.Or("end", Value::MakeNone());
  TROUPE_RETURN_IF_ERROR(reader.Finish());
  if (!part.Is(Kind::kString)) return Misused(part, "a string to look for");
  TROUPE_RETURN_IF_ERROR(meter.Searches(text.size(), part.AsText().size()));
  TROUPE_ASSIGN_OR_RETURN(const Window window, ReadWindow(text, start, end));
  const std::string_view seen =
      std::string_view(text.bytes()).substr(window.begin, window.end - window.begin);
  if (name == "count") {
    if (!window.exists) return Value::Int(0);
    const std::string& wanted = part.AsString();
    if (wanted.empty()) return Value::Int(static_cast<std::int64_t>(CountCharacters(seen)) + 1);
    std::int64_t count = 0;
    for (std::size_t at = seen.find(wanted); at != seen.npos;
         at = seen.find(wanted, at + wanted.size())) {
      ++count;
    }
    return Value::Int(count);
  }
  const bool from_right = name.front() == 'r';
  const std::size_t found = !window.exists ? seen.npos
                            : from_right   ? seen.rfind(part.AsString())
                                           : seen.find(part.AsString());
  if (found != seen.npos) {
    const std::string_view before = std::string_view(text.bytes()).substr(0, window.begin + found);
    return Value::Int(static_cast<std::int64_t>(CountCharacters(before)));
  }
  if (name.ends_with("index")) return InvalidArgument("{}(): not found", name);
  return Value::Int(-1);
}

Result<Value> JoinMethod(std::string_view name, const MarkedText& text, const Arguments& arguments,
                         Meter& meter) {
  ArgumentReader reader(name, arguments);
  const Value parts = reader.Required("iterable");
  TROUPE_RETURN_IF_ERROR(reader.Finish());
  TROUPE_ASSIGN_OR_RETURN(const Values items, Iterate(parts, meter));
  MarkedText joined;
  for (std::size_t i = 0; i < items.size(); ++i) {
    if (!items[i].Is(Kind::kString)) return Misused(items[i], "a list of strings to join");
    const MarkedText& item = items[i].AsText();
    TROUPE_RETURN_IF_ERROR(meter.Reads(item.size() + text.size()));
    if (joined.size() + item.size() + text.size() > meter.limits().string_bytes) {
      return meter.MakesString(joined.size() + item.size() + text.size());
    }
    if (i > 0) joined.Append(text);
    joined.Append(item);
  }
  TROUPE_RETURN_IF_ERROR(meter.MakesString(joined.size()));
  return Value::String(std::move(joined));
}

Result<Value> RemoveAffixMethod(std::string_view name, const MarkedText& text,
                                const Arguments& arguments, Meter&) {
  ArgumentReader reader(name, arguments);
  const MarkedText* affix = reader.Text("affix");
  TROUPE_RETURN_IF_ERROR(reader.Finish());
  if (affix == nullptr) return InvalidArgument("{}(): a string expected", name);
  const std::string_view bytes = text.bytes();
  if (name == "removeprefix" && bytes.starts_with(affix->bytes())) {
    return Value::String(text.Slice(affix->size(), text.size() - affix->size()));
  }
  if (name == "removesuffix" && bytes.ends_with(affix->bytes())) {
    return Value::String(text.Slice(0, text.size() - affix->size()));
  }
  return Value::String(text);
}

Result<Value> PartitionMethod(std::string_view name, const MarkedText& text,
                              const Arguments& arguments, Meter& meter) {
  ArgumentReader reader(name, arguments);
  const MarkedText* separator = reader.Text("sep");
  TROUPE_RETURN_IF_ERROR(reader.Finish());
  if (separator == nullptr || separator->empty()) {
    return InvalidArgument("{}(): a separator expected", name);
  }
  std::vector<MarkedText> parts = SplitAt(text, separator->bytes(), 1, name == "rpartition");
  const MarkedText middle = parts.size() == 2 ? *separator : MarkedText();
  parts.resize(2);
  if (name == "rpartition" && middle.empty()) std::swap(parts[0], parts[1]);
  return MakeList({Value::String(parts[0]), Value::String(middle), Value::String(parts[1])}, meter,
                  List::Flavour::kTuple);
}

Result<Value> QuestionMethod(std::string_view name, const MarkedText& text,
                             const Arguments& arguments, Meter&) {
  TROUPE_RETURN_IF_ERROR(ArgumentReader(name, arguments).Finish());
  const std::string& bytes = text.bytes();
  bool all = !bytes.empty(), cased = false;
  for (std::size_t at = 0; at < bytes.size(); at += CharacterLength(bytes, at)) {
    const char32_t c = CharacterAt(bytes, at);
    cased = cased || IsCased(c);
    all = all && (name == "isdigit"   ? IsDigit(c)
                  : name == "isalpha" ? IsLetter(c)
                  : name == "isalnum" ? IsDigit(c) || IsLetter(c)
                  : name == "isspace" ? IsSpace(c)
                  : name == "isupper" ? LowerOf(c) != c || !IsCased(c)
                                      : LowerOf(c) == c || !IsCased(c));
  }
  if (name == "isupper" || name == "islower") all = all && cased;
  return Value::Bool(all);
}

constexpr struct {
  std::string_view name;
  TextMethod method;
} kTextMethods[] = {
    {"strip", StripMethod},
    {"lstrip", StripMethod},
    {"rstrip", StripMethod},
    {"split", SplitMethod},
    {"rsplit", SplitMethod},
    {"splitlines", SplitLinesMethod},
    {"upper", CaseMethod},
    {"lower", CaseMethod},
    {"title", CaseMethod},
    {"capitalize", CaseMethod},
    {"replace", ReplaceMethod},
    {"startswith", AffixMethod},
    {"endswith", AffixMethod},
    {"find", FindMethod},
    {"rfind", FindMethod},
    {"index", FindMethod},
    {"rindex", FindMethod},
    {"count", FindMethod},
    {"join", JoinMethod},
    {"removeprefix", RemoveAffixMethod},
    {"removesuffix", RemoveAffixMethod},
    {"partition", PartitionMethod},
    {"rpartition", PartitionMethod},
    {"isdigit", QuestionMethod},
    {"isalpha", QuestionMethod},
    {"isalnum", QuestionMethod},
    {"isspace", QuestionMethod},
    {"isupper", QuestionMethod},
    {"islower", QuestionMethod},
};

constexpr std::string_view kDictMethods[] = {"items", "keys", "values", "get", "copy"};
constexpr std::string_view kListMethods[] = {"count", "index", "copy"};

TextMethod FindTextMethod(std::string_view name) {
  const auto found = std::find_if(std::begin(kTextMethods), std::end(kTextMethods),
                                  [&](const auto& known) { return known.name == name; });
  return found == std::end(kTextMethods) ? nullptr : found->method;
}

Result<Value> CallDictMethod(const Value& self, std::string_view name, const Arguments& arguments,
                             Meter& meter) {
  const Dict& dict = self.AsDict();
  ArgumentReader reader(name, arguments);
  if (name == "get") {
    if (!arguments.named.empty()) return InvalidArgument("get(): no names expected");
    const Value key = reader.Required("key");
    const Value otherwise = reader.Or("default", Value::MakeNone());
    TROUPE_RETURN_IF_ERROR(reader.Finish());
    TROUPE_RETURN_IF_ERROR(DictKey(key).status());
    const Value* found = dict.Find(key);
    return found == nullptr ? otherwise : *found;
  }
  TROUPE_RETURN_IF_ERROR(reader.Finish());
  if (name == "copy") return self;
  return DictView(dict, name, meter);
}

Result<Value> CallListMethod(const Value& self, std::string_view name, const Arguments& arguments,
                             Meter& meter) {
  ArgumentReader reader(name, arguments);
  if (name == "copy") {
    TROUPE_RETURN_IF_ERROR(reader.Finish());
    return self;
  }
  const Value wanted = reader.Required("value");
  TROUPE_RETURN_IF_ERROR(reader.Finish());
  std::int64_t count = 0, at = 0;
  for (const Value& item : self.AsList().items) {
    TROUPE_ASSIGN_OR_RETURN(const bool equal, Equal(item, wanted, meter));
    if (equal && name == "index") return Value::Int(at);
    count += equal;
    ++at;
  }
  if (name == "index") return InvalidArgument("index(): not found");
  return Value::Int(count);
}

}  // namespace

bool HasMethod(const Value& value, std::string_view name) {
  const auto is_in = [&](const auto& names) {
    return std::find(std::begin(names), std::end(names), name) != std::end(names);
  };
  switch (value.kind()) {
    case Kind::kString:
      return FindTextMethod(name) != nullptr;
    case Kind::kDict:
      return is_in(kDictMethods);
    case Kind::kList:
      return value.AsList().flavour <= List::Flavour::kTuple && is_in(kListMethods);
    default:
      return false;
  }
}

Result<Value> CallMethod(const Value& self, std::string_view name, const Arguments& arguments,
                         Meter& meter) {
  if (self.Is(Kind::kDict)) return CallDictMethod(self, name, arguments, meter);
  if (self.Is(Kind::kList)) return CallListMethod(self, name, arguments, meter);
  TROUPE_RETURN_IF_ERROR(meter.MakesString(self.AsText().size()));
  return FindTextMethod(name)(name, self.AsText(), arguments, meter);
}

}  // namespace troupe::jinja
