// What options of llama.cpp and ollama are here: the option that does the same under another name,
// or why there is none. For who types them out of habit; no command takes them.
#pragma once

#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "troupe/option_table.h"

namespace troupe {

struct ForeignOption {
  std::string_view name;  // with its dashes: "-ngl"
  std::string_view here;  // what does the same, by any of its names; empty: nothing does
  std::string_view why;   // where nothing does, in a few words
};

std::span<const ForeignOption> AllForeignOptions();

// What follows "there is no option NAME" to one who meant another program's: ": …" or "; …".
// Nothing: it is no such name, or what does the same is no option of this command.
std::optional<std::string> ForeignHint(const Options& options, std::string_view name);

}  // namespace troupe
