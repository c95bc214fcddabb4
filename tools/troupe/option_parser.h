// Reads a command line by a table of options. CLI11 does the work, and this is the only place that
// includes it.
#pragma once

#include <string>
#include <vector>

#include "troupe/option_table.h"

namespace troupe {

struct ParsedLine {
  enum class Kind {
    kComplete,  // all variables are set: the command can run
    kAnswer,    // --help, or another question: `text` goes to standard output
    kMistake,   // a usage error, which `text` explains in one line
  };
  Kind kind = Kind::kComplete;
  std::string text;
  // Of a complete line: the options that it names, in the order of the table. Subcommands' are not
  // among them.
  std::vector<const Option*> given = {};
};

// Sets the variables of the options that are given, and marks the subcommand that is.
ParsedLine ParseLine(Options& options, std::vector<std::string> arguments);

}  // namespace troupe
