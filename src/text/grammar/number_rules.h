// Rules for the decimal numbers between two bounds, digit by digit and so exactly.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "base/json.h"
#include "text/grammar/grammar.h"
#include "text/grammar/grammar_builder.h"

namespace troupe {

// A finite decimal number as written: sign, digits before the point without leading zeros (none for
// 0), digits after it without trailing zeros.
struct Decimal {
  bool is_negative = false;
  std::string whole;
  std::string fraction;

  bool operator==(const Decimal&) const = default;
};

// Nothing if it has more than 15 digits before or after the point, which doubles cannot tell apart.
std::optional<Decimal> DecimalOf(const Json& number);
// Negative, zero or positive, as a is less than, equal to or greater than b.
int Compare(const Decimal& a, const Decimal& b);

struct NumberBound {
  Decimal value;
  bool is_exclusive = false;

  bool operator==(const NumberBound&) const = default;
};

// From `least` to `most`; what is missing is the largest number of 16 digits on that side. No
// alternatives if no number lies between.
std::vector<GrammarSequence> IntegersBetween(const std::optional<NumberBound>& least,
                                             const std::optional<NumberBound>& most);
std::vector<GrammarSequence> NumbersBetween(const std::optional<NumberBound>& least,
                                            const std::optional<NumberBound>& most);

}  // namespace troupe
