#include "text/grammar/json_grammar.h"

#include <string_view>

#include "text/grammar/gbnf.h"

namespace troupe {
namespace {

// A lone half of a surrogate pair is no character, so that escapes come in pairs or name others.
// Dates are those of the Gregorian calendar.
constexpr std::string_view kJsonRules = R"gbnf(
value ::= object | array | string | number | boolean | "null"
boolean ::= "true" | "false"
object ::= "{" ws "}" | "{" ws member ("," ws member)* ws "}"
member ::= string colon value
array ::= "[" ws "]" | "[" ws value ("," ws value)* ws "]"
ws ::= "" | " " | "\n" "\n"? [ \t]{0,20}
colon ::= ":" " "?

string ::= "\"" char* "\""
char ::= [^"\\\x00-\x1F] | escape
escape ::= "\\" ["\\/bfnrt] | "\\u" code-unit
code-unit ::= [0-9a-cA-Ce-fE-F] hex{3} | [dD] [0-7] hex{2} | high "\\u" low
high ::= [dD] [89abAB] hex{2}
low ::= [dD] [c-fC-F] hex{2}
hex ::= [0-9a-fA-F]

integer ::= "-"? magnitude
magnitude ::= "0" | [1-9] [0-9]{0,15}
number ::= "-"? magnitude ("." [0-9]{1,16})? ([eE] [-+]? [0-9]{1,2})?

date-time ::= date [Tt] time
date ::= year "-" day-of-any-year | leap-year "-02-29"
day-of-any-year ::= month-of-31 "-" day-to-31 | month-of-30 "-" day-to-30 | "02-" day-to-28
month-of-31 ::= "01" | "03" | "05" | "07" | "08" | "10" | "12"
month-of-30 ::= "04" | "06" | "09" | "11"
day-to-28 ::= "0" [1-9] | "1" [0-9] | "2" [0-8]
day-to-30 ::= day-to-28 | "29" | "30"
day-to-31 ::= day-to-30 | "31"
year ::= [1-9] [0-9]{3} | "0" [1-9] [0-9]{2} | "00" [1-9] [0-9] | "000" [1-9]
leap-year ::= [0-9]{2} by-four | by-four "00"
by-four ::= "0" [48] | [2468] [048] | [13579] [26]
time ::= hour ":" [0-5] [0-9] ":" [0-5] [0-9] ("." [0-9]{1,9})? zone
hour ::= [01] [0-9] | "2" [0-3]
zone ::= [Zz] | [+-] hour ":" [0-5] [0-9]
uuid ::= hex{8} "-" hex{4} "-" hex{4} "-" hex{4} "-" hex{12}
)gbnf";

}  // namespace

Grammar JsonGrammar() { return ParseGbnf(kJsonRules, "value", {}).value(); }
Grammar JsonObjectGrammar() { return ParseGbnf(kJsonRules, "object", {}).value(); }

}  // namespace troupe
