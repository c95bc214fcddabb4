#include "text/jinja/json_text.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <limits>

#include "text/jinja/characters.h"
#include "text/jinja/compare.h"
#include "text/jinja/printing.h"

namespace troupe::jinja {
namespace {

void AppendUtf16Escape(char32_t c, std::string& out) {
  const auto unit = [&](char32_t code) {
    out += fmt::format("\\u{:04x}", static_cast<unsigned>(code));
  };
  if (c < 0x10000) return unit(c);
  unit(0xD800 + ((c - 0x10000) >> 10));
  unit(0xDC00 + ((c - 0x10000) & 0x3FF));
}

std::string JsonString(std::string_view text, bool ascii) {
  constexpr std::string_view kShort = "\"\\\n\r\t\b\f";
  constexpr std::string_view kLetters = "\"\\nrtbf";
  std::string out = "\"";
  for (std::size_t at = 0; at < text.size();) {
    const std::size_t length = CharacterLength(text, at);
    const char32_t c = CharacterAt(text, at);
    const std::size_t known = c < 0x80 ? kShort.find(static_cast<char>(c)) : std::string_view::npos;
    if (known != std::string_view::npos) {
      out += '\\';
      out += kLetters[known];
    } else if (c < 0x20 || (ascii && c > 0x7E)) {
      AppendUtf16Escape(c, out);
    } else {
      out += text.substr(at, length);
    }
    at += length;
  }
  return out + '"';
}

std::string JsonFloat(double number) {
  if (std::isnan(number)) return "NaN";
  if (std::isinf(number)) return number > 0 ? "Infinity" : "-Infinity";
  return PrintFloat(number);
}

class JsonWriter {
 public:
  JsonWriter(const JsonStyle& style, Meter& meter) : style_(style), meter_(meter) {}

  MarkedText Take() { return std::move(out_); }

  Status Put(const Value& value, int level) {
    TROUPE_RETURN_IF_ERROR(meter_.Steps());
    if (out_.size() > meter_.limits().string_bytes) return meter_.MakesString(out_.size());
    switch (value.kind()) {
      case Kind::kNone:
        return Write("null");
      case Kind::kBool:
        return Write(value.AsBool() ? "true" : "false");
      case Kind::kInt:
        return Write(std::to_string(value.AsInt()));
      case Kind::kFloat:
        return Write(JsonFloat(value.AsFloat()));
      case Kind::kString:
        return PutText(value.AsText());
      case Kind::kDict:
        return PutDict(value.AsDict(), level);
      case Kind::kList:
        if (value.AsList().flavour <= List::Flavour::kTuple) return PutList(value.AsList(), level);
        [[fallthrough]];
      default:
        return Misused(value, "what JSON can write");
    }
  }

 private:
  Status Write(std::string_view text) {
    out_.Append(text);
    return OkStatus();
  }

  Status PutText(const MarkedText& text) {
    TROUPE_RETURN_IF_ERROR(meter_.Reads(text.size()));
    out_.Append(JsonString(text.bytes(), style_.ascii), text.Whole());
    return OkStatus();
  }

  void BreakLine(int level) {
    if (!style_.indent) return;
    out_.Append("\n");
    for (int i = 0; i < level; ++i) out_.Append(*style_.indent);
  }

  Status PutList(const List& list, int level) {
    if (list.items.empty()) return Write("[]");
    out_.Append("[");
    for (std::size_t i = 0; i < list.items.size(); ++i) {
      if (i > 0) out_.Append(style_.item_separator);
      BreakLine(level + 1);
      TROUPE_RETURN_IF_ERROR(Put(list.items[i], level + 1));
    }
    BreakLine(level);
    return Write("]");
  }

  Status PutKey(const Value& key) {
    switch (key.kind()) {
      case Kind::kString:
        return PutText(key.AsText());
      case Kind::kNone:
        return Write("\"null\"");
      case Kind::kBool:
        return Write(key.AsBool() ? "\"true\"" : "\"false\"");
      case Kind::kInt:
        return Write('"' + std::to_string(key.AsInt()) + '"');
      case Kind::kFloat:
        return Write('"' + JsonFloat(key.AsFloat()) + '"');
      default:
        return Misused(key, "a key that JSON can write");
    }
  }

  Status PutDict(const Dict& dict, int level) {
    if (dict.entries.empty()) return Write("{}");
    auto entries = dict.entries;
    if (style_.sorted) {
      Status failed;
      std::stable_sort(entries.begin(), entries.end(), [&](const auto& a, const auto& b) {
        const Result<bool> less = Less(a.first, b.first, meter_);
        if (!less.ok()) failed = less.status();
        return less.ok() && *less;
      });
      TROUPE_RETURN_IF_ERROR(failed);
    }
    out_.Append("{");
    for (std::size_t i = 0; i < entries.size(); ++i) {
      if (i > 0) out_.Append(style_.item_separator);
      BreakLine(level + 1);
      TROUPE_RETURN_IF_ERROR(PutKey(entries[i].first));
      out_.Append(style_.key_separator);
      TROUPE_RETURN_IF_ERROR(Put(entries[i].second, level + 1));
    }
    BreakLine(level);
    return Write("}");
  }

  const JsonStyle& style_;
  Meter& meter_;
  MarkedText out_;
};

// A whole number of 64 bits with a sign stays one, as JSON's own reader has it.
Value NumberFromJson(const Json& json) {
  const std::string text = json.Dump();
  std::int64_t whole = 0;
  const auto read = std::from_chars(text.data(), text.data() + text.size(), whole);
  if (read.ec == std::errc() && read.ptr == text.data() + text.size()) return Value::Int(whole);
  return Value::Float(json.AsDouble());
}

}  // namespace

Result<MarkedText> WriteJson(const Value& value, const JsonStyle& style, Meter& meter) {
  JsonWriter writer(style, meter);
  TROUPE_RETURN_IF_ERROR(writer.Put(value, 0));
  MarkedText text = writer.Take();
  TROUPE_RETURN_IF_ERROR(meter.MakesString(text.size()));
  return text;
}

Value FromJson(const Json& json, Origin origin) {
  if (json.IsNull()) return Value::MakeNone();
  if (json.IsBool()) return Value::Bool(json.AsBool());
  if (json.IsNumber()) return NumberFromJson(json);
  if (json.IsString()) return Value::String(MarkedText(json.AsString(), origin));
  if (json.IsArray()) {
    List list;
    for (const Json& item : json.items()) list.items.push_back(FromJson(item, origin));
    for (const Value& item : list.items) list.depth = std::max(list.depth, item.Depth() + 1);
    return Value::Of(std::make_shared<const List>(std::move(list)));
  }
  Dict dict;
  for (const Json::Member& member : json.members()) {
    Value value = FromJson(member.value, origin);
    dict.depth = std::max(dict.depth, value.Depth() + 1);
    dict.index.emplace(TextKey(member.key), dict.entries.size());
    dict.entries.emplace_back(Value::String(MarkedText(member.key, origin)), std::move(value));
  }
  return Value::Of(std::make_shared<const Dict>(std::move(dict)));
}

}  // namespace troupe::jinja
