// Divides a template into tokens, as Jinja does with trim_blocks and lstrip_blocks on, which is how
// chat templates are written: the blanks before a tag that begins a line, and the line end behind a
// tag, belong to the tag. Comments and raw blocks end here.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "base/status.h"

namespace troupe::jinja {

struct Token {
  enum class Kind {
    kText,  // to be written as it is
    kOutputBegin,
    kOutputEnd,
    kBlockBegin,
    kBlockEnd,
    kName,
    kString,
    kInteger,
    kFloat,
    kSign,
    kEnd,
  };
  Kind kind = Kind::kEnd;
  std::string text;  // of a string, what it stands for
  int line = 1;
};

using TokenKind = Token::Kind;

// The last token is kEnd. Errors begin with "line 3: ".
Result<std::vector<Token>> Tokenize(std::string_view source);

// "'endfor'", "the end of a block": for errors.
std::string Describe(const Token& token);

}  // namespace troupe::jinja
