#include "text/grammar/number_rules.h"

#include <algorithm>
#include <cstdlib>
#include <string_view>
#include <utility>

namespace troupe {
namespace {

using Sequences = std::vector<GrammarSequence>;

constexpr std::size_t kMostDigits = 15;  // of a bound, before and after the point
constexpr std::uint64_t kLargestWhole = 9'999'999'999'999'999;

GrammarItem Digits(std::uint32_t least, std::uint32_t most) {
  return GrammarItem::Set({{'0', '9'}}).Times(least, most);
}

GrammarItem DigitsFromTo(char first, char last) {
  return GrammarItem::Set({{static_cast<char32_t>(first), static_cast<char32_t>(last)}});
}

char Next(char digit) { return static_cast<char>(digit + 1); }
char Previous(char digit) { return static_cast<char>(digit - 1); }

// Numbers of as many digits as both bounds have.
void AddSameLength(const std::string& prefix, std::string_view low, std::string_view high,
                   Sequences& out) {
  const auto n = static_cast<std::uint32_t>(low.size());
  if (low.find_first_not_of('0') == low.npos && high.find_first_not_of('9') == high.npos) {
    out.push_back({GrammarItem::Text(prefix), Digits(n, n)});
    return;
  }
  const std::string_view low_rest = low.substr(1);
  const std::string_view high_rest = high.substr(1);
  if (low[0] == high[0]) {
    AddSameLength(prefix + low[0], low_rest, high_rest, out);
    return;
  }
  AddSameLength(prefix + low[0], low_rest, std::string(n - 1, '9'), out);
  if (high[0] - low[0] >= 2) {
    out.push_back({GrammarItem::Text(prefix), DigitsFromTo(Next(low[0]), Previous(high[0])),
                   Digits(n - 1, n - 1)});
  }
  AddSameLength(prefix + high[0], std::string(n - 1, '0'), high_rest, out);
}

void AddWholes(const std::string& prefix, std::uint64_t low, std::uint64_t high, Sequences& out) {
  std::uint64_t first = 0;  // with as many digits as `last`
  for (std::uint64_t last = 9; first <= high; first = last + 1, last = 10 * last + 9) {
    if (last < low) continue;
    AddSameLength(prefix, std::to_string(std::max(first, low)),
                  std::to_string(std::min(last, high)), out);
  }
}

std::uint64_t WholeOf(const Decimal& value) {
  return value.whole.empty() ? 0 : std::stoull(value.whole);
}

// A bound of the digits after a point; what is left of it after the digits read so far.
struct FractionBound {
  bool is_active = false;  // otherwise the digits so far have decided
  std::string_view digits;
  bool is_exclusive = false;

  char First() const { return digits.empty() ? '0' : digits[0]; }
  FractionBound Rest() const {
    return {is_active, digits.empty() ? digits : digits.substr(1), is_exclusive};
  }
};

class FractionRules {
 public:
  FractionRules(std::uint32_t most_digits, Sequences& out) : most_(most_digits), out_(out) {}

  // `whole` and what may follow it: nothing, or a point and digits.
  void Add(const std::string& whole, FractionBound low, FractionBound high) {
    if (ZerosFit(low, high)) out_.push_back({GrammarItem::Text(whole)});
    AddDigits(whole + ".", low, high);
  }

 private:
  static bool ZerosFit(const FractionBound& low, const FractionBound& high) {
    if (low.is_active && (!low.digits.empty() || low.is_exclusive)) return false;
    return !high.is_active || !high.digits.empty() || !high.is_exclusive;
  }

  // One digit or more after the prefix.
  void AddDigits(const std::string& prefix, FractionBound low, FractionBound high) {
    const GrammarItem before = GrammarItem::Text(prefix);
    if (low.is_active && low.digits.empty() && !low.is_exclusive) low.is_active = false;
    if (high.is_active && high.digits.empty()) {  // not above zero
      const bool is_empty = high.is_exclusive || low.is_active;
      if (!is_empty) out_.push_back({before, GrammarItem::Text("0").Times(1, most_)});
      return;
    }
    if (!low.is_active && !high.is_active) {
      out_.push_back({before, Digits(1, most_)});
      return;
    }
    if (low.is_active && low.digits.empty() && !high.is_active) {  // above zero
      out_.push_back({before, GrammarItem::Text("0").Times(0, most_), DigitsFromTo('1', '9'),
                      Digits(0, most_)});
      return;
    }
    const char first = low.is_active ? low.First() : '0';
    const char last = high.is_active ? high.First() : '9';
    if (first > last) return;
    for (char digit = first; digit <= last; ++digit) {
      FractionBound low_rest = low.Rest();
      FractionBound high_rest = high.Rest();
      low_rest.is_active = low.is_active && digit == first;
      high_rest.is_active = high.is_active && digit == last;
      if (ZerosFit(low_rest, high_rest)) out_.push_back({GrammarItem::Text(prefix + digit)});
      AddDigits(prefix + digit, low_rest, high_rest);
    }
  }

  std::uint32_t most_;
  Sequences& out_;
};

// Numbers that are not negative.
void AddMagnitudes(const std::string& sign, const NumberBound& low,
                   const std::optional<NumberBound>& high, Sequences& out) {
  const std::uint64_t first = WholeOf(low.value);
  const std::uint64_t last = high ? WholeOf(high->value) : kLargestWhole;
  if (first > last) return;
  // Together with the digits of the bounds no more than a double can tell apart.
  const std::size_t longest = std::max<std::size_t>(
      {low.value.whole.size(), high ? high->value.whole.size() : 0, std::size_t{1}});
  const auto digits = static_cast<std::uint32_t>(std::max<std::size_t>(kMostDigits - longest, 1));
  FractionRules fractions(digits, out);
  FractionBound above = {true, low.value.fraction, low.is_exclusive};
  FractionBound below;
  if (high) below = {true, high->value.fraction, high->is_exclusive};
  if (first == last) {
    fractions.Add(sign + std::to_string(first), above, below);
    return;
  }
  fractions.Add(sign + std::to_string(first), above, {});
  const std::uint64_t last_free = high ? last - 1 : last;
  if (first + 1 <= last_free) {
    Sequences wholes;
    AddWholes(sign, first + 1, last_free, wholes);
    for (GrammarSequence& whole : wholes) {
      out.push_back(whole);
      whole.push_back(GrammarItem::Text("."));
      whole.push_back(Digits(1, digits));
      out.push_back(std::move(whole));
    }
  }
  if (high) fractions.Add(sign + std::to_string(last), {}, below);
}

NumberBound Negated(NumberBound bound) {
  bound.value.is_negative = false;
  return bound;
}

// The least whole number of a magnitude that a lower bound lets through, and the greatest for an
// upper.
std::uint64_t LeastWhole(const NumberBound& low) {
  const bool is_next = !low.value.fraction.empty() || low.is_exclusive;
  return WholeOf(low.value) + (is_next ? 1 : 0);
}
std::optional<std::uint64_t> GreatestWhole(const std::optional<NumberBound>& high) {
  if (!high) return kLargestWhole;
  const std::uint64_t whole = WholeOf(high->value);
  if (!high->value.fraction.empty() || !high->is_exclusive) return whole;
  return whole == 0 ? std::nullopt : std::optional(whole - 1);
}

// Calls add(sign, low, high) for the magnitudes of the numbers below and from zero on.
template <typename AddMagnitude>
void ForBothSigns(const std::optional<NumberBound>& least, const std::optional<NumberBound>& most,
                  AddMagnitude add) {
  const NumberBound from_zero;
  const NumberBound above_zero = {.value = {}, .is_exclusive = true};
  if (!most || !most->value.is_negative) {
    add("", least && !least->value.is_negative ? *least : from_zero, most);
  }
  if (!least || least->value.is_negative) {
    const bool has_most = most && most->value.is_negative;
    add("-", has_most ? Negated(*most) : above_zero,
        least ? std::optional(Negated(*least)) : std::nullopt);
  }
}

}  // namespace

std::optional<Decimal> DecimalOf(const Json& number) {
  std::string text = number.Dump();
  Decimal value;
  if (text[0] == '-') {
    value.is_negative = true;
    text.erase(0, 1);
  }
  int exponent = 0;
  if (const std::size_t e = text.find('e'); e != text.npos) {
    exponent = std::stoi(text.substr(e + 1));
    text.resize(e);
  }
  const std::size_t point = std::min(text.find('.'), text.size());
  value.whole = text.substr(0, point);
  value.fraction = text.substr(std::min(point + 1, text.size()));
  if (std::abs(exponent) > 400) return std::nullopt;
  for (; exponent > 0; --exponent) {
    value.whole += value.fraction.empty() ? '0' : value.fraction[0];
    if (!value.fraction.empty()) value.fraction.erase(0, 1);
  }
  for (; exponent < 0; ++exponent) {
    value.fraction.insert(0, 1, value.whole.empty() ? '0' : value.whole.back());
    if (!value.whole.empty()) value.whole.pop_back();
  }
  value.whole.erase(0, std::min(value.whole.find_first_not_of('0'), value.whole.size()));
  value.fraction.erase(value.fraction.find_last_not_of('0') + 1);
  if (value.whole.empty() && value.fraction.empty()) value.is_negative = false;
  if (value.whole.size() > kMostDigits || value.fraction.size() > kMostDigits) return std::nullopt;
  return value;
}

int Compare(const Decimal& a, const Decimal& b) {
  if (a.is_negative != b.is_negative) return a.is_negative ? -1 : 1;
  const int sign = a.is_negative ? -1 : 1;
  if (a.whole.size() != b.whole.size()) return a.whole.size() < b.whole.size() ? -sign : sign;
  if (const int whole = a.whole.compare(b.whole); whole != 0) return whole < 0 ? -sign : sign;
  const int fraction = a.fraction.compare(b.fraction);
  return fraction == 0 ? 0 : (fraction < 0 ? -sign : sign);
}

Sequences IntegersBetween(const std::optional<NumberBound>& least,
                          const std::optional<NumberBound>& most) {
  Sequences out;
  ForBothSigns(
      least, most,
      [&](const char* sign, const NumberBound& low, const std::optional<NumberBound>& high) {
        const auto last = GreatestWhole(high);
        if (last && LeastWhole(low) <= *last) AddWholes(sign, LeastWhole(low), *last, out);
      });
  return out;
}

Sequences NumbersBetween(const std::optional<NumberBound>& least,
                         const std::optional<NumberBound>& most) {
  Sequences out;
  ForBothSigns(
      least, most,
      [&](const char* sign, const NumberBound& low, const std::optional<NumberBound>& high) {
        AddMagnitudes(sign, low, high, out);
      });
  return out;
}

}  // namespace troupe
