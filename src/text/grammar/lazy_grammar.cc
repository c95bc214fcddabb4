#include "text/grammar/lazy_grammar.h"

#include <map>
#include <string_view>
#include <utility>
#include <vector>

#include "text/utf8.h"

namespace troupe {
namespace {

constexpr std::size_t kMostTriggerBytes = 4096;

// All beginnings of the triggers, the empty one first. While an answer is free, where it stands is
// the longest of these that it ends with (Aho and Corasick's automaton).
std::map<std::string, RuleId> Beginnings(std::span<const std::string> triggers) {
  std::map<std::string, RuleId> beginnings = {{"", 0}};
  for (std::string_view trigger : triggers) {
    std::size_t read = 0;
    while (read < trigger.size()) {
      read += ReadUtf8(trigger.substr(read)).length;
      beginnings.emplace(trigger.substr(0, read), 0);
    }
  }
  return beginnings;
}

std::string_view WithoutFirst(std::string_view text) { return text.substr(ReadUtf8(text).length); }

}  // namespace

Result<Grammar> AfterTriggers(Grammar grammar, std::span<const std::string> triggers,
                              TriggerUse use) {
  if (triggers.empty()) return InvalidArgument("a grammar that waits needs a text to wait for");
  std::size_t bytes = 0;
  for (const std::string& trigger : triggers) {
    bytes += trigger.size();
    if (trigger.empty()) return InvalidArgument("an empty text to wait for");
    if (FindInvalidUtf8(trigger)) return InvalidArgument("a text to wait for that is not UTF-8");
  }
  if (bytes > kMostTriggerBytes) {
    return InvalidArgument("texts to wait for of {} bytes together, at most {} allowed", bytes,
                           kMostTriggerBytes);
  }
  grammar.rules[grammar.root].name = fmt::format("after-trigger-{}", grammar.rules.size());
  std::map<std::string, RuleId> beginnings = Beginnings(triggers);
  for (auto& [text, rule] : beginnings) {
    rule = static_cast<RuleId>(grammar.rules.size());
    grammar.rules.push_back({.name = fmt::format("free-{}", rule)});
  }
  const RuleId start = beginnings.at("");
  const auto ends_with_trigger = [&](std::string_view text) {
    for (const std::string& trigger : triggers) {
      if (text.ends_with(trigger)) return true;
    }
    return false;
  };
  for (const auto& [text, rule] : beginnings) {
    auto& alternatives = grammar.rules[rule].alternatives;
    if (ends_with_trigger(text)) {
      alternatives.push_back({GrammarItem::Rule(grammar.root)});
      if (use.repeats) alternatives.back().push_back(GrammarItem::Rule(start));
      continue;
    }
    if (use.may_be_missing) alternatives.push_back({});
    // Each character that goes on with some beginning that the text ends with, the longest counts.
    CodePointSet taken;
    std::map<std::string, RuleId> next;
    for (std::string_view end = text;; end = WithoutFirst(end)) {
      for (auto found = beginnings.upper_bound(std::string(end));
           found != beginnings.end() && found->first.starts_with(end); ++found) {
        const std::string_view last = std::string_view(found->first).substr(end.size());
        if (ReadUtf8(last).length == last.size()) next.emplace(last, found->second);
      }
      if (end.empty()) break;
    }
    for (const auto& [character, target] : next) {
      const char32_t c = DecodeUtf8(character);
      taken.push_back({c, c});
      alternatives.push_back({GrammarItem::Text(character), GrammarItem::Rule(target)});
    }
    alternatives.push_back(
        {GrammarItem::Set(Complement(Normalized(std::move(taken)))), GrammarItem::Rule(start)});
  }
  grammar.root = start;
  return grammar;
}

Grammar TextUntil(const std::string& mark) {
  Grammar nothing{.rules = {{.name = "nothing", .alternatives = {{}}, .place = {}}}};
  return AfterTriggers(std::move(nothing), {&mark, 1}, {.repeats = false, .may_be_missing = false})
      .value();
}

}  // namespace troupe
