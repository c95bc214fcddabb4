#include "text/grammar/object_rules.h"

#include <algorithm>
#include <span>
#include <string_view>
#include <utility>

#include "base/json.h"
#include "text/grammar/pattern_rules.h"
#include "text/utf8.h"

namespace troupe {
namespace {

// Characters that JSON writes as a backslash and one more.
constexpr std::string_view kShortEscapes = "\"\\/bfnrt";
constexpr std::string_view kShortEscaped = "\"\\/\b\f\n\r\t";

GrammarItem Comma() { return GrammarItem::Text(","); }

// Sorted names that agree on the first `read` bytes: what may follow these.
GrammarItem AddOtherEndings(std::span<const std::string> names, std::size_t read,
                            GrammarBuilder& builder) {
  std::vector<GrammarSequence> alternatives;
  const GrammarItem any_rest = builder.Json("char").Times(0, kUnbounded);
  const GrammarItem quote = GrammarItem::Text("\"");
  if (!names.empty() && names[0].size() == read) {
    names = names.subspan(1);
  } else {
    alternatives.push_back({quote});
  }
  CodePointSet next;
  for (std::size_t i = 0; i < names.size();) {
    const std::string_view rest = std::string_view(names[i]).substr(read);
    const std::string_view first = rest.substr(0, ReadUtf8(rest).length);
    std::size_t end = i + 1;
    while (end < names.size() && std::string_view(names[end]).substr(read).starts_with(first))
      ++end;
    const char32_t c = DecodeUtf8(first);
    next.push_back({c, c});
    alternatives.push_back(
        {AddJsonCharacters({{c, c}}, builder),
         AddOtherEndings(names.subspan(i, end - i), read + first.size(), builder)});
    i = end;
  }
  next = Normalized(std::move(next));
  CodePointSet written = next;  // no plain character: it has an escape, or is one of `next`
  for (const CodePointRange& range : {CodePointRange{0, 0x1F}, {'"', '"'}, {'\\', '\\'}}) {
    written.push_back(range);
  }
  alternatives.push_back(
      {GrammarItem::Set(Complement(Normalized(std::move(written)))), any_rest, quote});
  for (std::size_t i = 0; i < kShortEscapes.size(); ++i) {
    const auto c = static_cast<char32_t>(kShortEscaped[i]);
    const bool is_next = std::ranges::any_of(
        next, [&](const CodePointRange& range) { return c >= range.first && c <= range.last; });
    if (is_next) continue;
    alternatives.push_back(
        {GrammarItem::Text(std::string("\\") + kShortEscapes[i]), any_rest, quote});
  }
  return builder.Add("other-name", std::move(alternatives));
}

}  // namespace

GrammarItem AddOtherNames(std::vector<std::string> names, GrammarBuilder& builder) {
  if (names.empty()) return builder.Json("string");
  std::ranges::sort(names);
  const GrammarItem endings = AddOtherEndings(names, 0, builder);
  return builder.Add("other-names", {{GrammarItem::Text("\""), endings}});
}

GrammarItem AddObject(const std::vector<PropertyRule>& properties,
                      const std::optional<GrammarItem>& additional, GrammarBuilder& builder) {
  const GrammarItem blanks = builder.Json("ws");
  // From the last property to the first: what may follow when nothing was written before, and when
  // something was.
  GrammarItem first = GrammarItem::Text("");
  GrammarItem later = GrammarItem::Text("");
  if (additional) {
    std::vector<std::string> names;
    for (const PropertyRule& property : properties) names.push_back(property.name);
    const GrammarItem member = builder.Add("additional", {{AddOtherNames(std::move(names), builder),
                                                           builder.Json("colon"), *additional}});
    const GrammarItem one_more = builder.Add("more", {{Comma(), blanks, member}});
    later = one_more.Times(0, kUnbounded);
    first = builder.Add("members", {{member, later}, {}});
  }
  for (std::size_t i = properties.size(); i-- > 0;) {
    const PropertyRule& property = properties[i];
    const GrammarItem member = builder.Add(
        "member",
        {{GrammarItem::Text(Json(property.name).Dump()), builder.Json("colon"), property.value}});
    std::vector<GrammarSequence> at_first = {{member, later}};
    std::vector<GrammarSequence> at_later = {{Comma(), blanks, member, later}};
    if (!property.is_required) {
      at_first.push_back({first});
      at_later.push_back({later});
    }
    first = builder.Add("members", std::move(at_first));
    later = builder.Add("more", std::move(at_later));
  }
  return builder.Add("object",
                     {{GrammarItem::Text("{"), blanks, first, blanks, GrammarItem::Text("}")}});
}

}  // namespace troupe
