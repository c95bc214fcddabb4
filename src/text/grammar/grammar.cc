#include "text/grammar/grammar.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "text/grammar/grammar_facts.h"
#include "text/utf8.h"

namespace troupe {
namespace {

std::string NamePlace(const GrammarRule& rule) {
  return rule.place.empty() ? fmt::format("rule '{}'", rule.name)
                            : fmt::format("{}: rule '{}'", rule.place, rule.name);
}

Status CheckItem(const Grammar& grammar, const GrammarRule& rule, const GrammarItem& item,
                 const GrammarLimits& limits) {
  if (item.kind == GrammarItem::Kind::kRule && item.rule >= grammar.rules.size()) {
    return InvalidArgument("{} refers to rule {}, but there are {}", NamePlace(rule), item.rule,
                           grammar.rules.size());
  }
  if (item.least > item.most) {
    return InvalidArgument("{}: repetition {{{},{}}} ends before it begins", NamePlace(rule),
                           item.least, item.most);
  }
  const std::uint32_t bound = item.most == kUnbounded ? item.least : item.most;
  if (bound > limits.repetitions) {
    return InvalidArgument("{}: a repetition of {}, at most {} allowed", NamePlace(rule), bound,
                           limits.repetitions);
  }
  if (const auto at = FindInvalidUtf8(item.text); at.has_value()) {
    return InvalidArgument("{}: byte {} of a text is not valid UTF-8", NamePlace(rule), *at);
  }
  return OkStatus();
}

Status CheckSizes(const Grammar& grammar, const GrammarLimits& limits) {
  if (grammar.rules.size() > limits.rules) {
    return Error(Code::kResourceExhausted, "a grammar of {} rules, at most {} allowed",
                 grammar.rules.size(), limits.rules);
  }
  std::size_t items = 0;
  std::size_t bytes = 0;
  std::size_t ranges = 0;
  for (const GrammarRule& rule : grammar.rules) {
    for (const GrammarSequence& sequence : rule.alternatives) {
      items += sequence.size() + 1;
      for (const GrammarItem& item : sequence) {
        bytes += item.text.size();
        ranges += item.set.size();
        TROUPE_RETURN_IF_ERROR(CheckItem(grammar, rule, item, limits));
      }
    }
  }
  if (items > limits.items || bytes > limits.text_bytes || ranges > limits.ranges) {
    return Error(Code::kResourceExhausted,
                 "a grammar of {} items, {} bytes of text and {} ranges, at most {}, {} and {} "
                 "allowed",
                 items, bytes, ranges, limits.items, limits.text_bytes, limits.ranges);
  }
  return OkStatus();
}

void AppendEscaped(char32_t c, bool in_class, std::string& out) {
  const auto code = static_cast<std::uint32_t>(c);
  if (c == '\n') {
    out += "\\n";
  } else if (c == '\\' || (!in_class && c == '"') || (in_class && (c == '[' || c == ']'))) {
    out += fmt::format("\\{}", static_cast<char>(c));
  } else if (c < 0x20 || c == 0x7F || (in_class && (c == '^' || c == '-'))) {
    out += fmt::format("\\x{:02X}", code);
  } else if (c >= 0xD800 && c <= 0xDFFF) {
    out += fmt::format("\\u{:04X}", code);
  } else if (c > 0xFFFF) {
    out += fmt::format("\\U{:08X}", code);
  } else {
    AppendUtf8(c, out);
  }
}

std::string PrintText(std::string_view text) {
  std::string out = "\"";
  while (!text.empty()) {
    const std::size_t length = ReadUtf8(text).length;
    AppendEscaped(DecodeUtf8(text.substr(0, length)), false, out);
    text.remove_prefix(length);
  }
  return out + '"';
}

std::string PrintSet(const CodePointSet& set) {
  std::string out = "[";
  for (const CodePointRange& range : set) {
    AppendEscaped(range.first, true, out);
    if (range.last == range.first) continue;
    out += '-';
    AppendEscaped(range.last, true, out);
  }
  return out + ']';
}

std::string PrintItem(const Grammar& grammar, const GrammarItem& item) {
  std::string out;
  switch (item.kind) {
    case GrammarItem::Kind::kText:
      out = PrintText(item.text);
      break;
    case GrammarItem::Kind::kSet:
      out = PrintSet(item.set);
      break;
    case GrammarItem::Kind::kRule:
      out = item.rule == grammar.root ? "root" : grammar.rules[item.rule].name;
      break;
  }
  if (item.least == 1 && item.most == 1) return out;
  if (item.least == 0 && item.most == 1) return out + '?';
  if (item.least == 0 && item.most == kUnbounded) return out + '*';
  if (item.least == 1 && item.most == kUnbounded) return out + '+';
  if (item.most == kUnbounded) return out + fmt::format("{{{},}}", item.least);
  return out + fmt::format("{{{},{}}}", item.least, item.most);
}

std::string PrintRule(const Grammar& grammar, RuleId id) {
  const GrammarRule& rule = grammar.rules[id];
  std::string out = (id == grammar.root ? std::string("root") : rule.name) + " ::=";
  for (std::size_t i = 0; i < rule.alternatives.size(); ++i) {
    if (i > 0) out += " |";
    if (rule.alternatives[i].empty()) out += " \"\"";
    for (const GrammarItem& item : rule.alternatives[i]) out += ' ' + PrintItem(grammar, item);
  }
  if (rule.alternatives.empty()) out += " []";  // the class that no character is in
  return out + '\n';
}

}  // namespace

CodePointSet Normalized(CodePointSet set) {
  std::ranges::sort(set, {}, &CodePointRange::first);
  CodePointSet merged;
  for (const CodePointRange& range : set) {
    if (!merged.empty() && range.first <= merged.back().last + 1) {
      merged.back().last = std::max(merged.back().last, range.last);
    } else {
      merged.push_back(range);
    }
  }
  return merged;
}

CodePointSet Complement(const CodePointSet& set) {
  CodePointSet rest;
  char32_t from = 0;
  for (const CodePointRange& range : set) {
    if (range.first > from) rest.push_back({from, range.first - 1});
    from = range.last + 1;
  }
  if (from <= kLastCodePoint) rest.push_back({from, kLastCodePoint});
  return rest;
}

GrammarItem GrammarItem::Text(std::string_view text) {
  return {.kind = Kind::kText, .text = std::string(text)};
}

GrammarItem GrammarItem::Set(CodePointSet set) {
  return {.kind = Kind::kSet, .set = Normalized(std::move(set))};
}

GrammarItem GrammarItem::Rule(RuleId rule) { return {.kind = Kind::kRule, .rule = rule}; }

GrammarItem GrammarItem::Times(std::uint32_t at_least, std::uint32_t at_most) const {
  GrammarItem repeated = *this;
  repeated.least = at_least;
  repeated.most = at_most;
  return repeated;
}

Status Validate(const Grammar& grammar, const GrammarLimits& limits) {
  if (grammar.root >= grammar.rules.size()) return InvalidArgument("a grammar without a root rule");
  TROUPE_RETURN_IF_ERROR(CheckSizes(grammar, limits));
  const GrammarFacts facts = FindFacts(grammar);
  if (const auto circle = FindLeftRecursion(grammar, facts); !circle.empty()) {
    std::string path;
    const std::size_t shown = std::min<std::size_t>(circle.size(), 8);
    for (std::size_t i = 0; i < shown; ++i) path += grammar.rules[circle[i]].name + " -> ";
    if (shown < circle.size()) path += "... -> ";
    return InvalidArgument("{} begins with itself: {}{}", NamePlace(grammar.rules[circle[0]]), path,
                           grammar.rules[circle[0]].name);
  }
  if (!facts.productive[grammar.root]) {
    return InvalidArgument("{} matches no text of any length",
                           NamePlace(grammar.rules[grammar.root]));
  }
  return OkStatus();
}

std::string ToString(const Grammar& grammar) {
  if (grammar.rules.empty()) return "";
  std::string out = PrintRule(grammar, grammar.root);
  for (RuleId rule = 0; rule < grammar.rules.size(); ++rule) {
    if (rule != grammar.root) out += PrintRule(grammar, rule);
  }
  return out;
}

}  // namespace troupe
