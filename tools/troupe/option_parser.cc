#include "troupe/option_parser.h"

#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <cctype>
#include <memory>
#include <sstream>
#include <utility>

#include "troupe/did_you_mean.h"
#include "troupe/foreign_options.h"

namespace troupe {
namespace {

struct Bound {
  const Option* option;
  CLI::Option* parsed;
};

// Thrown through CLI11, as its own CallForHelp is.
struct EarlyAnswer {
  std::string text;
};

// CLI11's convention: an empty string is no complaint.
CLI::Validator ValidatorOf(const Option::Judge& judge) {
  return CLI::Validator([judge](std::string& text) { return judge(text).message(); }, "");
}

// CLI11's own says "fifo not in {lru,arc}".
CLI::Validator MemberOf(const std::vector<std::string>& choices) {
  return ValidatorOf([choices](const std::string& text) -> Status {
    if (std::ranges::find(choices, text) != choices.end()) return OkStatus();
    const std::optional<std::string> meant = DidYouMean(text, choices);
    return InvalidArgument("'{}' found, expected one of {}{}", text, fmt::join(choices, ", "),
                           meant ? fmt::format("; did you mean {}?", *meant) : "");
  });
}

CLI::Validator AnswererOf(const Option::Question& question) {
  return CLI::Validator(
      [question](std::string& text) {
        if (text == question.value) throw EarlyAnswer{question.answer()};
        return std::string();
      },
      "");
}

std::string NamesOf(const Option& option) {
  std::string names;
  for (const std::string& name : {option.short_name(), option.long_name(), option.positional()}) {
    if (!name.empty()) names += (names.empty() ? "" : ",") + name;
  }
  return names;
}

CLI::Option* BindValue(CLI::App& app, const Option& option) {
  const CLI::callback_t set = [&option](const CLI::results_t& texts) {
    const Status status = option.Set(texts);
    if (!status.ok()) throw CLI::ValidationError(option.name(), status.message());
    return true;
  };
  return app.add_option(NamesOf(option), set, option.help());
}

// An argument that has an option's name, too, is explained once.
class HelpFormatter final : public CLI::Formatter {
 public:
  std::string make_option(const CLI::Option* option, bool is_positional) const override {
    if (is_positional || !option->get_positional()) {
      return CLI::Formatter::make_option(option, is_positional);
    }
    std::ostringstream out;
    CLI::detail::format_help(
        out, fmt::format("{} {}", make_option_name(option, false), option->get_type_name()),
        fmt::format("The same as {}", option->get_name(true)), get_column_width());
    return out.str();
  }
};

// One command's or subcommand's table as CLI11's.
class Binding {
 public:
  Binding(CLI::App& app, Options& options) : app_(app), options_(options) {
    if (!options.subcommands().empty()) {
      app.require_subcommand(1);
      app.set_help_all_flag("--help-all", "The options of all of them");
    }
    for (const Option& option : options.all()) bound_.push_back({&option, Bind(option)});
    for (const Bound& bound : bound_) {
      for (const std::string& name : bound.option->excluded()) {
        bound.parsed->excludes(app.get_option(name));
      }
      for (const std::string& name : bound.option->needed()) {
        bound.parsed->needs(app.get_option(name));
      }
    }
    for (Options& sub : options.subcommands()) {
      subcommands_.emplace_back(*app.add_subcommand(sub.name(), sub.summary()), sub);
    }
  }

  void MarkChosen() {
    for (Binding& sub : subcommands_) sub.options_.set_chosen(sub.app_.parsed());
  }

  std::vector<const Option*> Given() const {
    std::vector<const Option*> given;
    for (const Bound& bound : bound_) {
      if (bound.parsed->count() > 0) given.push_back(bound.option);
    }
    return given;
  }

  // All but the last letter, which may take the next word.
  bool AreOurFlags(const std::vector<std::string>& words, const std::string& name) const {
    const Options* command = &options_;
    for (const Binding& sub : subcommands_) {
      if (!words.empty() && sub.options_.name() == words.front()) command = &sub.options_;
    }
    for (std::size_t i = 1; i < name.size(); ++i) {
      const Option* const one = command->Find(fmt::format("-{}", name[i]));
      const bool is_last = i + 1 == name.size();
      if (one == nullptr || (!is_last && one->takes() != Option::Takes::kNothing)) return false;
    }
    return true;
  }

  // "-fa" would be read as -f and its value "a", and "-hf" as -h: of those of another program that
  // are known, nobody means that. Flags of ours that are joined, as in "-if FILE", are left alone,
  // and what may be another option's value.
  std::optional<std::string> ForeignWithOneDash(const std::vector<std::string>& words) const {
    for (std::size_t i = 0; i < words.size() && words[i] != "--"; ++i) {
      const std::string name = NameIn(words[i]);
      if (name.size() < kLeastWithOneDash || name[0] != '-' || name[1] == '-') continue;
      if (AreOurFlags(words, name)) continue;
      const Option* const before = i > 0 ? options_.Find(words[i - 1]) : nullptr;
      const bool is_value = before != nullptr && words[i - 1].starts_with('-') &&
                            before->takes() != Option::Takes::kNothing;
      if (is_value) continue;
      const std::optional<std::string> hint = ForeignHint(options_, name);
      if (hint) return fmt::format("there is no option {}{}", name, *hint);
    }
    return std::nullopt;
  }

  // The one line for what CLI11 found wrong.
  std::string Explain(const CLI::ParseError& error, const std::vector<std::string>& words) const {
    const Binding& active = Active();
    if (const auto long_one = active.LongWithOneDash(words)) return *long_one;
    const std::vector<std::string> unknown = active.app_.remaining();
    if (dynamic_cast<const CLI::ArgumentMismatch*>(&error) != nullptr) {
      if (const auto flag = active.FlagWithAValue(error, words)) return *flag;
      return active.WhichValuesAreWrong(error);
    }
    const bool missing = dynamic_cast<const CLI::RequiredError*>(&error) != nullptr;
    const bool extra = dynamic_cast<const CLI::ExtrasError*>(&error) != nullptr;
    if (!missing && !extra) return error.what();
    // A mistyped option says more than what is missing because of it.
    if (!unknown.empty()) return active.WhatIsUnknown(unknown);
    return active.WhatIsMissing(error);
  }

 private:
  static constexpr std::size_t kLeastWithOneDash = 3;  // a dash and two letters

  // "--memory" in "--memory=6GiB".
  static std::string NameIn(const std::string& word) { return word.substr(0, word.find('=')); }

  CLI::Option* Bind(const Option& option) {
    CLI::Option* parsed =
        option.takes() == Option::Takes::kNothing
            ? app_.add_flag_callback(
                  NamesOf(option), [&option] { static_cast<void>(option.Set({})); }, option.help())
            : BindValue(app_, option);
    parsed->group(option.heading());
    if (option.required()) parsed->required();
    if (option.takes() == Option::Takes::kNothing) return parsed->disable_flag_override();
    parsed->type_name(option.type());
    if (option.takes() == Option::Takes::kSeveralValues) {
      parsed->expected(CLI::detail::expected_max_vector_size);
    }
    if (option.separator() != 0) parsed->delimiter(option.separator());
    if (!option.choices().empty()) parsed->check(MemberOf(option.choices()));
    for (const Option::Judge& judge : option.judges()) parsed->check(ValidatorOf(judge));
    for (const Option::Question& question : option.questions()) {
      parsed->check(AnswererOf(question));
    }
    return parsed;
  }

  const Binding& Active() const {
    const auto chosen =
        std::ranges::find_if(subcommands_, [](const Binding& sub) { return sub.app_.parsed(); });
    return chosen == subcommands_.end() ? *this : *chosen;
  }

  // "-ngl" is read as -n and its value "gl", or as several short options: of neither speaks who
  // meant an option of another program.
  std::optional<std::string> LongWithOneDash(const std::vector<std::string>& words) const {
    for (const std::string& word : words) {
      const std::string name = NameIn(word);
      const bool letters = name.size() >= kLeastWithOneDash && name[0] == '-' &&
                           std::all_of(name.begin() + 1, name.end(), [](unsigned char c) {
                             return std::isalpha(c) != 0 || c == '-';
                           });
      if (!letters || name[1] == '-') continue;
      const std::optional<std::string> foreign = ForeignHint(options_, name);
      if (foreign) return fmt::format("there is no option {}{}", name, *foreign);
      const std::optional<std::string> meant = Meant("-" + name);
      return fmt::format("there is no option {}{}", name,
                         meant ? fmt::format("; did you mean {}?", *meant)
                               : "; those of several letters begin with two dashes");
    }
    return std::nullopt;
  }

  // What the word is near to: an option or, without dashes, a subcommand.
  std::optional<std::string> Meant(const std::string& word) const {
    if (!word.starts_with("--")) return DidYouMean(word, SubcommandNames());
    std::vector<std::string> options = {"--help"};
    for (const Bound& bound : bound_) {
      if (!bound.option->long_name().empty()) options.push_back(bound.option->long_name());
    }
    return DidYouMean(NameIn(word), options);
  }

  std::vector<std::string> SubcommandNames() const {
    std::vector<std::string> names;
    for (const Binding& sub : subcommands_) names.push_back(sub.options_.name());
    return names;
  }

  // An option says more than an argument that may have been its value.
  std::string WhatIsUnknown(const std::vector<std::string>& words) const {
    const auto dashed =
        std::ranges::find_if(words, [](const auto& word) { return word.starts_with('-'); });
    const bool is_option = dashed != words.end();
    const std::string& word = is_option ? *dashed : words.front();
    const std::optional<std::string> foreign = ForeignHint(options_, NameIn(word));
    if (foreign) return fmt::format("there is no option {}{}", NameIn(word), *foreign);
    const std::optional<std::string> meant = Meant(word);
    const std::string hint = meant ? fmt::format("; did you mean {}?", *meant) : "";
    if (is_option) return fmt::format("there is no option {}{}", word, hint);
    if (subcommands_.empty()) return fmt::format("'{}' found, no further argument expected", word);
    return fmt::format("there is no subcommand '{}', expected one of {}{}", word,
                       fmt::join(SubcommandNames(), ", "), hint);
  }

  // "--chat=3", though --chat takes none.
  std::optional<std::string> FlagWithAValue(const CLI::ParseError& error,
                                            const std::vector<std::string>& words) const {
    for (const Bound& bound : bound_) {
      const std::string& name = bound.option->long_name();
      if (bound.option->takes() != Option::Takes::kNothing) continue;
      const auto refusal = CLI::ArgumentMismatch::FlagOverride(name.substr(2));
      if (std::string_view(error.what()) != refusal.what()) continue;
      const auto given = std::ranges::find_if(
          words, [&](const std::string& word) { return word.starts_with(name + "="); });
      if (given == words.end()) continue;
      return fmt::format("{}: '{}' found, expected no value", name, given->substr(name.size() + 1));
    }
    return std::nullopt;
  }

  std::string WhichValuesAreWrong(const CLI::ParseError& error) const {
    // "--tokens: 1 required N missing", "--tokens: At Most 1 required but received 2"
    const std::string_view what = error.what();
    for (const Bound& bound : bound_) {
      const std::string& name = bound.option->name();
      if (!what.starts_with(name + ":")) continue;
      if (bound.parsed->count() > 1) {
        return fmt::format("{}: given {} times, expected once", name, bound.parsed->count());
      }
      return fmt::format("{}: no value found, expected {}", name, bound.option->type());
    }
    return error.what();
  }

  std::string WhatIsMissing(const CLI::ParseError& error) const {
    for (const Bound& bound : bound_) {
      if (bound.option->required() && bound.parsed->count() == 0) {
        return fmt::format("{} is required", bound.option->name());
      }
    }
    if (subcommands_.empty()) return error.what();
    return fmt::format("a subcommand is missing, expected one of {}",
                       fmt::join(SubcommandNames(), ", "));
  }

  CLI::App& app_;
  Options& options_;
  std::vector<Bound> bound_;
  std::vector<Binding> subcommands_;
};

}  // namespace

ParsedLine ParseLine(Options& options, std::vector<std::string> arguments) {
  constexpr std::size_t kColumnOfHelp = 32;
  CLI::App app(options.summary(), options.name());
  app.footer(fmt::format("Example:\n{}", options.example()));
  const auto formatter = std::make_shared<HelpFormatter>();
  formatter->column_width(kColumnOfHelp);
  app.formatter(formatter);
  Binding binding(app, options);
  if (const auto foreign = binding.ForeignWithOneDash(arguments)) {
    return {.kind = ParsedLine::Kind::kMistake, .text = *foreign};
  }
  const std::vector<std::string> words = arguments;
  std::ranges::reverse(arguments);  // CLI11 takes them from the back
  try {
    app.parse(arguments);
  } catch (const EarlyAnswer& answer) {
    return {.kind = ParsedLine::Kind::kAnswer, .text = answer.text};
  } catch (const CLI::CallForHelp&) {
    return {.kind = ParsedLine::Kind::kAnswer, .text = app.help()};
  } catch (const CLI::CallForAllHelp&) {
    return {.kind = ParsedLine::Kind::kAnswer, .text = app.help("", CLI::AppFormatMode::All)};
  } catch (const CLI::ParseError& error) {
    return {.kind = ParsedLine::Kind::kMistake, .text = binding.Explain(error, words)};
  }
  binding.MarkChosen();
  return {.kind = ParsedLine::Kind::kComplete, .text = {}, .given = binding.Given()};
}

}  // namespace troupe
