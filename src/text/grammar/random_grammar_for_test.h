// Small grammars by chance, over the letters a, b, c and a few characters of two bytes.
#pragma once

#include <string>
#include <string_view>
#include <utility>

#include "base/rng.h"
#include "text/grammar/automaton.h"
#include "text/grammar/grammar.h"
#include "text/grammar/matcher.h"

namespace troupe {

inline GrammarItem RandomItem(Rng& rng, RuleId rules) {
  constexpr std::string_view kLetters = "abc";
  GrammarItem item;
  const std::uint64_t kind = rng.Below(10);
  if (kind < 4) {
    std::string text;
    for (std::uint64_t n = rng.Below(4); n > 0; --n) text += kLetters[rng.Below(3)];
    if (rng.Below(8) == 0) text += "\u00e9";
    item = GrammarItem::Text(text);
  } else if (kind < 6) {
    item = GrammarItem::Set({{'a', static_cast<char32_t>('a' + rng.Below(3))}, {0xE9, 0xEB}});
  } else {
    item = GrammarItem::Rule(static_cast<RuleId>(rng.Below(rules)));
  }
  if (rng.Below(3) != 0) return item;
  const auto least = static_cast<std::uint32_t>(rng.Below(3));
  const auto most = least + static_cast<std::uint32_t>(rng.Below(3));
  return item.Times(least, rng.Below(3) == 0 ? kUnbounded : most);
}

// Valid, and with few ways to begin a text.
inline Grammar RandomGrammar(Rng& rng) {
  while (true) {
    Grammar grammar;
    grammar.rules.resize(1 + rng.Below(5));
    for (std::size_t i = 0; i < grammar.rules.size(); ++i) {
      grammar.rules[i].name = fmt::format("r{}", i);
      for (std::uint64_t n = 1 + rng.Below(3); n > 0; --n) {
        GrammarSequence sequence;
        for (std::uint64_t m = rng.Below(4); m > 0; --m) {
          sequence.push_back(RandomItem(rng, static_cast<RuleId>(grammar.rules.size())));
        }
        grammar.rules[i].alternatives.push_back(std::move(sequence));
      }
    }
    const auto automaton = Automaton::Compile(grammar);
    if (automaton.ok() && Matcher(*automaton, {.stacks = 30}).CanEnd().ok()) return grammar;
  }
}

}  // namespace troupe
