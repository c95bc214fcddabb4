#include <fmt/format.h>

#include "troupe/completion.h"

namespace troupe {
namespace {

// A script of three parts: which command the line names so far, what may stand at the cursor (a
// branch for each option with a value and for each command), and the choice among it.
constexpr std::string_view kBegin =
    R"(# Completion of troupe for bash; `troupe completion bash` prints it.
)";
constexpr std::string_view kFunction = R"(_troupe() {
  local word=${COMP_WORDS[COMP_CWORD]} before=${COMP_WORDS[COMP_CWORD-1]}
  # "--name=value" comes as three words.
  if [[ $word == "=" ]]; then
    word=
  elif [[ $before == "=" ]]; then
    before=${COMP_WORDS[COMP_CWORD-2]}
  fi
  local command= i
  for ((i = 1; i < COMP_CWORD; ++i)); do
    case "$command ${COMP_WORDS[i]}" in
)";
constexpr std::string_view kValues = R"(        command="${command:+$command }${COMP_WORDS[i]}" ;;
      *) break ;;
    esac
  done
  local words= options= files= folders= models= list=
  case "$command $before" in
)";
constexpr std::string_view kCommandCase = R"(    *)
      case "$command" in
)";
constexpr std::string_view kScriptEnd = R"(      esac
      if [[ $word == -* || -z $words$files$folders$models ]]; then
        words=$options files= folders= models=
      fi ;;
  esac
  local kept=
  if [[ -n $list && $word == *,* ]]; then
    kept=${word%,*},
    word=${word##*,}
  fi
  mapfile -t COMPREPLY < <(compgen -P "$kept" -W "$words" -- "$word")
  # Without the type, as a colon would end a word; the part of a name is enough where it is clear. Not
  # by compgen -W, which would carry out what a name has between $( and ).
  if [[ -n $models ]]; then
    while IFS= read -r models; do
      [[ -n $models && $models == "$word"* ]] && COMPREPLY+=("$models")
    done < <(_troupe_models | sed 's/:.*//' | sort -u)
    models=yes
  fi
  # A file has the same right as a model.
  if [[ -n $models && -n $files ]]; then
    mapfile -t -O "${#COMPREPLY[@]}" COMPREPLY < <(compgen -f -- "$word")
    compopt -o filenames -o default 2> /dev/null
  elif [[ -n $folders ]]; then
    compopt -o dirnames 2> /dev/null
  elif [[ -n $files ]]; then
    compopt -o default 2> /dev/null
  fi
}
complete -F _troupe troupe
)";

struct BashPlace {
  std::string command;  // "run", "trace info"; empty for the program itself
  const Options* options;
};

void Collect(const Options& options, const std::string& command, std::vector<BashPlace>& places) {
  places.push_back({command, &options});
  for (const Options& sub : options.subcommands()) {
    Collect(sub, command.empty() ? sub.name() : command + " " + sub.name(), places);
  }
}

std::string Joined(const std::vector<std::string>& words) {
  return fmt::format("{}", fmt::join(words, " "));
}

std::string Assign(const CompletedValue& value) {
  std::string out;
  if (!value.words.empty()) out += fmt::format(" words={}", ShellQuoted(Joined(value.words)));
  if (value.files) out += " files=1";
  if (value.models) out += " models=1";
  if (value.folders) out += " folders=1";
  return out;
}

std::string BranchOfValue(const std::string& command, const Option& option) {
  std::string pattern;
  for (const std::string& name : {option.short_name(), option.long_name()}) {
    if (name.empty()) continue;
    if (!pattern.empty()) pattern += " | ";
    pattern += fmt::format("\"{} {}\"", command, name);
  }
  if (pattern.empty() || option.takes() == Option::Takes::kNothing) return {};
  return fmt::format("    {}){}{} ;;\n", pattern, Assign(ValueOf(option)),
                     option.separator() == ',' ? " list=1" : "");
}

std::string BranchOfCommand(const BashPlace& place) {
  CompletedValue positional;
  std::vector<std::string> options = {"-h", "--help"};
  for (const Option& option : place.options->all()) {
    for (const std::string& name : {option.short_name(), option.long_name()}) {
      if (!name.empty()) options.push_back(name);
    }
    if (option.positional().empty()) continue;
    const CompletedValue value = ValueOf(option);
    positional.words.insert(positional.words.end(), value.words.begin(), value.words.end());
    positional.files |= value.files;
    positional.folders |= value.folders;
    positional.models |= value.models;
  }
  for (const Options& sub : place.options->subcommands()) positional.words.push_back(sub.name());
  if (place.command.empty()) options.emplace_back("--version");
  return fmt::format("        \"{}\"){} options={} ;;\n", place.command, Assign(positional),
                     ShellQuoted(Joined(options)));
}

}  // namespace

std::string BashCompletion(const Options& program) {
  std::vector<BashPlace> places;
  Collect(program, "", places);
  std::string script(kBegin);
  script += fmt::format("_troupe_models() {{\n  {}\n}}\n", ListedModels("\"${COMP_WORDS[0]}\""));
  script += kFunction;
  std::string paths;
  for (const BashPlace& place : places) {
    for (const Options& sub : place.options->subcommands()) {
      if (!paths.empty()) paths += " | ";
      paths += fmt::format("\"{} {}\"", place.command, sub.name());
    }
  }
  script += fmt::format("      {})\n", paths);
  script += kValues;
  for (const BashPlace& place : places) {
    for (const Option& option : place.options->all()) {
      script += BranchOfValue(place.command, option);
    }
  }
  script += kCommandCase;
  for (const BashPlace& place : places) script += BranchOfCommand(place);
  return script += kScriptEnd;
}

}  // namespace troupe
