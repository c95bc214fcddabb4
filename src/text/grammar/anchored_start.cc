#include "text/grammar/anchored_start.h"

#include <map>
#include <string_view>
#include <utility>
#include <vector>

#include "base/check.h"
#include "text/utf8.h"

namespace troupe {
namespace {

// Where a text stands that has come so far as a beginning of some start.
struct Place {
  RuleId rule = 0;
  std::map<std::string, GrammarItem> next;  // by the next character
};

}  // namespace

GrammarItem FreeUnlessStarted(std::span<const AnchoredStart> starts, GrammarBuilder& builder) {
  std::map<std::string, Place> places;
  const auto place_at = [&](std::string_view text) -> Place& {
    const auto [found, is_new] = places.try_emplace(std::string(text));
    if (is_new) found->second.rule = builder.Declare("unless-started");
    return found->second;
  };
  const RuleId root = place_at("").rule;
  for (const AnchoredStart& start : starts) {
    const std::string_view text = start.text;
    for (std::size_t at = 0; at < text.size();) {
      const std::size_t length = ReadUtf8(text.substr(at)).length;
      const std::string character(text.substr(at, length));
      const bool is_last = at + length == text.size();
      GrammarItem next =
          is_last ? start.rest : GrammarItem::Rule(place_at(text.substr(0, at + length)).rule);
      const auto [known, is_new] =
          place_at(text.substr(0, at)).next.emplace(character, std::move(next));
      TROUPE_CHECK(is_new || !is_last);
      at += length;
    }
  }
  const GrammarItem anything = GrammarItem::Set({{0, kLastCodePoint}}).Times(0, kUnbounded);
  for (const auto& [text, place] : places) {
    std::vector<GrammarSequence> alternatives = {{}};
    CodePointSet taken;
    for (const auto& [character, next] : place.next) {
      const char32_t c = DecodeUtf8(character);
      taken.push_back({c, c});
      alternatives.push_back({GrammarItem::Text(character), next});
    }
    const CodePointSet others = Complement(Normalized(std::move(taken)));
    alternatives.push_back({GrammarItem::Set(others), anything});
    builder.Define(place.rule, std::move(alternatives));
  }
  return GrammarItem::Rule(root);
}

}  // namespace troupe
