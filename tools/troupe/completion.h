// Scripts by which a shell completes the words of a command line: commands, options, the values
// that an option can have, files. Made from the table of options, so that they cannot differ from
// it.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "troupe/option_table.h"

namespace troupe {

// `program` has every command as a subcommand.
std::string BashCompletion(const Options& program);
std::string ZshCompletion(const Options& program);
std::string FishCompletion(const Options& program);

// What the three have in common.
struct CompletedValue {
  std::vector<std::string> words;
  bool files = false;
  bool folders = false;
  bool models = false;  // by the names that `troupe list` shows
};
CompletedValue ValueOf(const Option& option);
// The first clause of a help text.
std::string_view Brief(std::string_view help);
// A command of a POSIX shell that prints the names of models, each a line, without what stands
// before the last slash. `program`: what the shell calls troupe.
std::string ListedModels(std::string_view program);
// 'text' for a shell that takes '\'' for a quote.
std::string ShellQuoted(std::string_view text);

}  // namespace troupe
