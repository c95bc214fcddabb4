#include <fmt/format.h>

#include "troupe/completion.h"

namespace troupe {
namespace {

// In single quotes fish takes \' and \\ for what follows.
std::string FishQuoted(std::string_view text) {
  std::string quoted = "'";
  for (const char c : text) {
    if (c == '\'' || c == '\\') quoted += '\\';
    quoted += c;
  }
  return quoted + "'";
}

std::string Line(const std::string& condition, const std::string& rest) {
  return fmt::format("complete -c troupe -n {} {}\n", FishQuoted(condition), rest);
}

std::string Values(const Option& option) {
  const CompletedValue value = ValueOf(option);
  std::string words;
  if (!value.words.empty()) {
    words = " -a " + FishQuoted(fmt::format("{}", fmt::join(value.words, " ")));
  }
  if (value.models) words = " -a '(__troupe_models)'";
  if (value.folders) return words + " -a '(__fish_complete_directories)'";
  return words + (value.files ? " -F" : " -f");
}

std::string LineOf(const Option& option, const std::string& condition) {
  std::string lines;
  if (!option.positional().empty()) lines += Line(condition, Values(option).substr(1));
  std::string names;
  if (!option.short_name().empty()) names += " -s " + option.short_name().substr(1);
  if (!option.long_name().empty()) names += " -l " + option.long_name().substr(2);
  if (names.empty()) return lines;
  if (option.takes() != Option::Takes::kNothing) names += " -r" + Values(option);
  const std::string help = " -d " + FishQuoted(Brief(option.help()));
  return lines + Line(condition, names.substr(1) + help);
}

// `seen` is the condition that the line names these options' command.
std::string LinesFor(const Options& options, const std::string& seen) {
  std::string lines;
  std::string names;
  for (const Options& sub : options.subcommands()) names += " " + sub.name();
  const std::string before = seen.empty() ? "" : seen + "; and ";
  for (const Options& sub : options.subcommands()) {
    lines += Line(fmt::format("{}not __fish_seen_subcommand_from{}", before, names),
                  fmt::format("-f -a {} -d {}", sub.name(), FishQuoted(sub.summary())));
  }
  for (const Options& sub : options.subcommands()) {
    lines += LinesFor(sub, fmt::format("{}__fish_seen_subcommand_from {}", before, sub.name()));
  }
  for (const Option& option : options.all()) lines += LineOf(option, seen);
  return lines;
}

}  // namespace

std::string FishCompletion(const Options& program) {
  return "# Completion of troupe for fish; `troupe completion fish` prints it.\n"
         "function __troupe_models\n  " +
         ListedModels("troupe") +
         "\nend\n"
         "complete -c troupe -s h -l help -d 'Print the help'\n" +
         LinesFor(program, "");
}

}  // namespace troupe
