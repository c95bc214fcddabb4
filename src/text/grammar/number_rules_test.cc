#include "text/grammar/number_rules.h"

#include <gtest/gtest.h>

#include <cmath>

#include "base/rng.h"
#include "testing/test_seed.h"
#include "text/grammar/matcher.h"

namespace troupe {
namespace {

std::optional<NumberBound> Bound(const Json& number, bool is_exclusive = false) {
  return NumberBound{DecimalOf(number).value(), is_exclusive};
}

bool FitsNumber(const std::vector<GrammarSequence>& sequences, const std::string& text) {
  Grammar grammar;
  grammar.rules = {{"number", sequences}};
  const auto automaton = Automaton::Compile(grammar);
  if (!automaton.ok()) return false;  // no number lies between the bounds
  Matcher matcher(*automaton);
  return matcher.Accept(text).value() && matcher.CanEnd().value();
}

TEST(NumberRules, DecimalsAreReadAsWritten) {
  EXPECT_EQ(DecimalOf(Json(-120)).value(), (Decimal{true, "120", ""}));
  EXPECT_EQ(DecimalOf(Json(0.25)).value(), (Decimal{false, "", "25"}));
  EXPECT_EQ(DecimalOf(Json(1e-7)).value(), (Decimal{false, "", "0000001"}));
  EXPECT_EQ(DecimalOf(Json(1.5e9)).value(), (Decimal{false, "1500000000", ""}));
  EXPECT_EQ(DecimalOf(Json(-0.0)).value(), (Decimal{false, "", ""}));
  EXPECT_EQ(DecimalOf(Json(1e300)), std::nullopt);
  EXPECT_EQ(DecimalOf(Json(1e-300)), std::nullopt);
}

TEST(NumberRules, DecimalsCompareAsNumbersDo) {
  Rng rng(TestSeed());
  for (int round = 0; round < 2000; ++round) {
    const auto number = [&] {
      return std::round((rng.Uniform() - 0.5) * std::pow(10, rng.Below(5)) * 100) / 100;
    };
    const double a = number();
    const double b = rng.Below(4) == 0 ? a : number();
    const int expected = a < b ? -1 : a > b ? 1 : 0;
    ASSERT_EQ(Compare(DecimalOf(Json(a)).value(), DecimalOf(Json(b)).value()), expected) << a << b;
  }
}

TEST(NumberRules, IntegersBetweenBoundsAreAllThatLieThere) {
  Rng rng(TestSeed());
  for (int round = 0; round < 150; ++round) {
    const auto bound = [&]() -> std::optional<NumberBound> {
      if (rng.Below(5) == 0) return std::nullopt;
      const double half = rng.Below(3) == 0 ? 0.5 : 0;
      return Bound(Json(static_cast<double>(rng.Below(261)) - 130 + half), rng.Below(2) == 0);
    };
    const auto least = bound();
    const auto most = bound();
    const auto rules = IntegersBetween(least, most);
    for (int number = -135; number <= 135; ++number) {
      const Decimal decimal = DecimalOf(Json(number)).value();
      const int low = least ? Compare(decimal, least->value) : 1;
      const int high = most ? Compare(decimal, most->value) : -1;
      const bool expected = (low > 0 || (low == 0 && !least->is_exclusive)) &&
                            (high < 0 || (high == 0 && !most->is_exclusive));
      ASSERT_EQ(FitsNumber(rules, std::to_string(number)), expected) << number;
    }
  }
}

TEST(NumberRules, NumbersBetweenBoundsAreAllThatLieThere) {
  Rng rng(TestSeed());
  for (int round = 0; round < 60; ++round) {
    const auto number = [&] {
      return (static_cast<double>(rng.Below(8001)) + (rng.Below(9) == 0 ? 86'000 : -4000)) / 1000;
    };
    const bool same = rng.Below(8) == 0;
    const double low = rng.Below(3) == 0 ? std::round(number()) : number();
    const double high = same ? low : rng.Below(3) == 0 ? std::round(number()) : number();
    const bool excludes_low = rng.Below(2) == 0;
    const bool excludes_high = rng.Below(2) == 0;
    const auto rules =
        NumbersBetween(Bound(Json(low), excludes_low), Bound(Json(high), excludes_high));
    for (int i = 0; i < 60; ++i) {
      const double near = rng.Below(2) == 0 ? low : high;
      const double value =
          std::round((near + (rng.Below(3) == 0 ? 0 : number() / 50)) * 1000) / 1000;
      std::string text = Json(value).Dump();
      if (rng.Below(3) == 0) text += "00";  // zeros at the end change nothing
      if (value == 0) text = "0";
      const bool expected = (excludes_low ? value > low : value >= low) &&
                            (excludes_high ? value < high : value <= high);
      ASSERT_EQ(FitsNumber(rules, text), expected) << text << " in " << low << " to " << high;
    }
  }
}

TEST(NumberRules, WhatIsNoJsonNumberIsNone) {
  const auto rules = NumbersBetween(Bound(Json(-5)), Bound(Json(1000)));
  for (const char* text : {"00", "01", "-0", "-0.0", "1.", ".5", "+1", "1e2", "", "-"}) {
    EXPECT_FALSE(FitsNumber(rules, text)) << text;
  }
  EXPECT_TRUE(FitsNumber(rules, "1000.000"));
  EXPECT_FALSE(FitsNumber(rules, "1000.001"));
  EXPECT_TRUE(IntegersBetween(Bound(Json(5)), Bound(Json(4))).empty());
}

}  // namespace
}  // namespace troupe
