#include "troupe/man_page.h"

#include <fmt/format.h>

#include <algorithm>
#include <vector>

namespace troupe {
namespace {

// Text as roff takes it: plain ASCII of which no character is a command.
std::string Roff(std::string text) {
  constexpr std::string_view kEllipsis = "…";
  for (std::size_t at; (at = text.find(kEllipsis)) != std::string::npos;) {
    text.replace(at, kEllipsis.size(), "...");
  }
  std::string out;
  bool line_begins = true;
  for (const char c : text) {
    if (line_begins && (c == '.' || c == '\'')) out += "\\&";
    line_begins = c == '\n';
    if (c == '\\') {
      out += "\\e";
    } else if (c == '-') {
      out += "\\-";
    } else if (c == '\'') {
      out += "\\(aq";
    } else {
      out += c;
    }
  }
  return out;
}

// Inside the quotes of a request a quote is two.
std::string Heading(std::string_view text) {
  std::string out;
  for (const char c : Roff(std::string(text)))
    out += c == '"' ? std::string("\"\"") : std::string(1, c);
  return out;
}

std::string Verbatim(const std::string& text) { return fmt::format(".nf\n{}\n.fi\n", Roff(text)); }

std::string EntryOf(const Option& option) {
  std::string names;
  for (const std::string& name : {option.short_name(), option.long_name(), option.positional()}) {
    if (name.empty()) continue;
    if (!names.empty()) names += ", ";
    names += fmt::format("\\fB{}\\fR", Roff(name));
  }
  if (option.takes() != Option::Takes::kNothing && option.type() != option.positional()) {
    names += fmt::format(" \\fI{}\\fR", Roff(option.type()));
  }
  std::string help = option.help() + ".";
  if (!option.choices().empty()) {
    help += fmt::format("\nOne of: {}.", fmt::join(option.choices(), ", "));
  }
  if (option.required()) help += "\nRequired.";
  return fmt::format(".TP\n{}\n{}\n", names, Roff(help));
}

std::string Entries(const Options& options) {
  std::vector<std::string> headings;
  for (const Option& option : options.all()) {
    if (std::ranges::find(headings, option.heading()) == headings.end()) {
      headings.push_back(option.heading());
    }
  }
  std::string out;
  for (const std::string& heading : headings) {
    out += fmt::format(".PP\n\\fI{}:\\fR\n", Roff(heading));
    for (const Option& option : options.all()) {
      if (option.heading() == heading) out += EntryOf(option);
    }
  }
  return out;
}

std::string Section(const Options& options, const std::string& path) {
  std::string out = fmt::format(".SS \"{}\"\n{}.\n", Heading(path), Roff(options.summary()));
  out += Entries(options);
  if (!options.example().empty()) {
    out += fmt::format(".PP\nExample:\n{}", Verbatim(options.example()));
  }
  for (const Options& sub : options.subcommands()) out += Section(sub, path + " " + sub.name());
  return out;
}

constexpr std::string_view kPageEnd =
    ".SH EXIT STATUS\n"
    ".TP\n0\nSuccess.\n"
    ".TP\n1\nThe work failed; standard error says why in one line.\n"
    ".TP\n2\nThe command line is wrong.\n"
    ".TP\n130\nInterrupted by Ctrl\\-C.\n"
    ".TP\n141\nWhoever read the standard output has gone, as head does. Nothing is said of it.\n";

}  // namespace

std::string ManPage(const Options& program, std::string_view version) {
  std::string page = fmt::format(
      ".TH TROUPE 1 \"\" \"troupe {}\" \"User Commands\"\n"
      ".SH NAME\ntroupe \\- run Mixture\\-of\\-Experts language models larger than memory\n"
      ".SH SYNOPSIS\n.B troupe\n.I COMMAND\n[\\fIOPTIONS\\fR]\n"
      ".SH DESCRIPTION\nRuns language models in GGUF files whose experts need not fit into "
      "memory.\n"
      ".B troupe\n.I COMMAND\n.B \\-\\-help\nexplains the options of a command, "
      "with an example.\n.SH COMMANDS\n",
      Roff(std::string(version)));
  for (const Options& command : program.subcommands()) {
    page += Section(command, "troupe " + command.name());
  }
  return page += kPageEnd;
}

}  // namespace troupe
