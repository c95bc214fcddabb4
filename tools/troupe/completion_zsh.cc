#include <fmt/format.h>

#include "troupe/completion.h"

namespace troupe {
namespace {

// Text for the [help] and :name: of an argument of _arguments.
std::string Escaped(std::string_view text) {
  std::string escaped;
  for (const char c : text) {
    if (c == '[' || c == ']' || c == ':' || c == '\\') escaped += '\\';
    escaped += c;
  }
  return escaped;
}

std::string FunctionOf(const std::string& command) {
  std::string name = "_troupe";
  for (const char c : command) name += c == ' ' ? '_' : c;
  return name;
}

// ":FILE:_files", ":POLICY:(lru lfu)".
std::string Action(const Option& option) {
  const CompletedValue value = ValueOf(option);
  std::string action = " ";
  if (value.folders) {
    action = "_files -/";
  } else if (value.models) {
    action = value.files ? "_troupe_models_or_files" : "_troupe_models";
  } else if (value.files && !value.words.empty()) {
    action = fmt::format("{{compadd - {}; _files}}", fmt::join(value.words, " "));
  } else if (value.files) {
    action = "_files";
  } else if (!value.words.empty() && option.separator() != 0) {
    action = fmt::format("_sequence compadd - {}", fmt::join(value.words, " "));
  } else if (!value.words.empty()) {
    action = fmt::format("({})", fmt::join(value.words, " "));
  }
  return fmt::format(":{}:{}", Escaped(option.type()), action);
}

std::string Arguments(const Option& option) {
  std::string lines;
  const bool several = option.takes() == Option::Takes::kSeveralValues;
  if (!option.positional().empty()) {
    // "*" is any number of them; without a number it is the next one.
    lines += fmt::format(" \\\n    {}", ShellQuoted((several ? "*" : "") + Action(option)));
  }
  for (const std::string& name : {option.short_name(), option.long_name()}) {
    if (name.empty()) continue;
    const std::string action = option.takes() == Option::Takes::kNothing ? "" : Action(option);
    lines +=
        fmt::format(" \\\n    {}", ShellQuoted(fmt::format("{}{}[{}]{}", several ? "*" : "", name,
                                                           Escaped(Brief(option.help())), action)));
  }
  return lines;
}

std::string FunctionFor(const Options& options, const std::string& path) {
  std::string script;
  for (const Options& sub : options.subcommands())
    script += FunctionFor(sub, path + " " + sub.name());
  script += fmt::format("{}() {{\n", FunctionOf(path));
  if (options.subcommands().empty()) {
    script += "  _arguments '(- *)'{-h,--help}'[Print this help]'";
    for (const Option& option : options.all()) script += Arguments(option);
    return script + "\n}\n";
  }
  script +=
      "  local state\n  local -a commands\n"
      "  _arguments -C '1:command:->command' '*::argument:->argument'\n"
      "  case $state in\n  command)\n    commands=(\n";
  for (const Options& sub : options.subcommands()) {
    script += fmt::format("      {}\n",
                          ShellQuoted(fmt::format("{}:{}", sub.name(), Escaped(sub.summary()))));
  }
  script += "    )\n    _describe command commands ;;\n  argument)\n    case $words[1] in\n";
  for (const Options& sub : options.subcommands()) {
    script += fmt::format("    {}) {} ;;\n", sub.name(), FunctionOf(path + " " + sub.name()));
  }
  return script + "    esac ;;\n  esac\n}\n";
}

}  // namespace

std::string ZshCompletion(const Options& program) {
  return "#compdef troupe\n# Completion of troupe for zsh; `troupe completion zsh` prints it.\n" +
         fmt::format(
             "_troupe_models() {{\n  local -a models\n  models=(\"${{(@f)$({})}}\")\n"
             "  compadd -a models\n}}\n"
             "_troupe_models_or_files() {{\n  _troupe_models\n  _files\n}}\n",
             ListedModels("troupe")) +
         FunctionFor(program, "") +
         // Autoloaded from $fpath, the file is the body of _troupe; sourced, it defines it.
         "if [ \"$funcstack[1]\" = _troupe ]; then\n  _troupe \"$@\"\nelse\n  compdef _troupe "
         "troupe\nfi\n";
}

}  // namespace troupe
