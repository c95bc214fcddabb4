#include "text/grammar/object_rules.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <string>

#include "base/json.h"
#include "base/rng.h"
#include "testing/test_seed.h"
#include "text/grammar/matcher.h"

namespace troupe {
namespace {

std::shared_ptr<const Automaton> CompileItem(GrammarBuilder builder, const GrammarItem& item) {
  return Automaton::Compile(std::move(builder).Take(item.rule)).value();
}

bool FitsItem(const std::shared_ptr<const Automaton>& automaton, std::string_view text) {
  Matcher matcher(automaton);
  return matcher.Accept(text).value() && matcher.CanEnd().value();
}

TEST(ObjectRules, OtherNamesAreAllNamesButThose) {
  Rng rng(TestSeed());
  const std::vector<std::string> letters = {"a", "b", "\"", "\\", "\n", "é", "/"};
  const auto random_name = [&] {
    std::string name;
    for (std::uint64_t n = rng.Below(4); n > 0; --n) name += letters[rng.Below(letters.size())];
    return name;
  };
  for (int round = 0; round < 100; ++round) {
    std::vector<std::string> names;
    for (std::uint64_t n = 1 + rng.Below(5); n > 0; --n) {
      const std::string name = random_name();
      if (std::ranges::find(names, name) == names.end()) names.push_back(name);
    }
    GrammarBuilder builder;
    const GrammarItem item = AddOtherNames(names, builder);
    const auto automaton = CompileItem(std::move(builder), item);
    for (int i = 0; i < 40; ++i) {
      const std::string name =
          i < static_cast<int>(names.size()) ? names[static_cast<std::size_t>(i)] : random_name();
      const bool is_other = std::ranges::find(names, name) == names.end();
      ASSERT_EQ(FitsItem(automaton, Json(name).Dump()), is_other) << name;
    }
  }
}

TEST(ObjectRules, NoEscapeSpellsAForbiddenName) {
  GrammarBuilder builder;
  const GrammarItem item = AddOtherNames({"ab", "/"}, builder);
  const auto automaton = CompileItem(std::move(builder), item);
  for (const char* text :
       {R"("ab")", R"("\u0061b")", R"("a\u0062")", R"("/")", R"("\/")", R"("\u002f")"}) {
    EXPECT_FALSE(FitsItem(automaton, text)) << text;
  }
  for (const char* text :
       {R"("")", R"("a")", R"("abc")", R"("abc\u0061")", R"("\n")", R"("a\/")"}) {
    EXPECT_TRUE(FitsItem(automaton, text)) << text;
  }
}

// Each subset of the properties in order, and some that are not.
TEST(ObjectRules, AcceptEachSubsetThatHasWhatIsRequired) {
  Rng rng(TestSeed());
  for (int round = 0; round < 60; ++round) {
    GrammarBuilder builder;
    std::vector<PropertyRule> properties;
    for (std::size_t i = 0; i < 1 + rng.Below(4); ++i) {
      properties.push_back(
          {std::string(1, static_cast<char>('a' + i)), GrammarItem::Text("1"), rng.Below(3) == 0});
    }
    const bool is_open = rng.Below(2) == 0;
    const GrammarItem item = AddObject(
        properties, is_open ? std::optional(GrammarItem::Text("2")) : std::nullopt, builder);
    const auto automaton = CompileItem(std::move(builder), item);
    for (unsigned chosen = 0; chosen < 1U << properties.size(); ++chosen) {
      std::string text;
      bool expected = true;
      for (std::size_t i = 0; i < properties.size(); ++i) {
        const bool is_there = (chosen >> i & 1) != 0;
        expected &= is_there || !properties[i].is_required;
        if (is_there) text += (text.empty() ? "\"" : ",\"") + properties[i].name + "\":1";
      }
      ASSERT_EQ(FitsItem(automaton, "{" + text + "}"), expected) << text;
      const std::string comma = text.empty() ? "" : ",";
      ASSERT_EQ(FitsItem(automaton, "{" + text + comma + "\"x\":2,\"y\":2}"), expected && is_open);
      ASSERT_FALSE(FitsItem(automaton, "{" + text + comma + "\"a\":2}"));
      ASSERT_FALSE(FitsItem(automaton, "{" + text + ",}"));
    }
  }
}

}  // namespace
}  // namespace troupe
