// The table of what a command takes: its options with their names, values, limits and help.
// Commands fill it in (AddOptions); what reads it are the parser (option_parser.h), the shell
// completion (completion.h) and the man page (man_page.h). Knows nothing of how a command line is
// parsed.
#pragma once

#include <concepts>
#include <functional>
#include <list>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "troupe/option_value.h"

namespace troupe {

class Option {
 public:
  enum class Takes { kNothing, kOneValue, kSeveralValues };
  using Texts = std::vector<std::string>;
  using Store = std::function<Status(const Texts&)>;  // an error is a usage error
  using Judge = std::function<Status(const std::string&)>;
  // A value that is a question: the answer is printed, and nothing else is done.
  struct Question {
    std::string value;
    std::function<std::string()> answer;
  };

  // `names` are those of the command line in any order: "-n,--tokens"; one without a dash is that
  // of a positional argument: "-m,--model,MODEL".
  Option(std::string_view names, std::string help, std::string heading, Takes takes, Store store);

  Option& Required();
  Option& Type(std::string name);       // what help calls the value: FILE, N
  Option& SeparatedBy(char separator);  // "1,2" are two values
  Option& OneOf(std::vector<std::string> choices);
  Option& Suggest(std::vector<std::string> values);  // some of the values there are, to complete
  Option& NamesModels();                             // those that `troupe list` shows are values
  Option& Excludes(std::string other);               // "--other", by its long name
  Option& Needs(std::string other);
  Option& Check(Judge judge);  // of each value
  Option& Answers(std::string value, std::function<std::string()> answer);
  template <std::integral T>
  Option& Between(T least, T most) {
    return BetweenWholeNumbers(static_cast<std::int64_t>(least), static_cast<std::int64_t>(most));
  }
  Option& Between(double least, double most);

  // "-t", "--threads" and "MODEL", each empty if there is none.
  const std::string& short_name() const { return short_name_; }
  const std::string& long_name() const { return long_name_; }
  const std::string& positional() const { return positional_; }
  // As errors call it: the positional's name, or the long one, or the short one.
  const std::string& name() const;
  const std::string& help() const { return help_; }
  const std::string& heading() const { return heading_; }
  const std::string& type() const { return type_; }
  Takes takes() const { return takes_; }
  bool required() const { return required_; }
  char separator() const { return separator_; }  // 0: none
  const std::vector<std::string>& choices() const { return choices_; }
  const std::vector<std::string>& suggestions() const { return suggestions_; }
  bool names_models() const { return names_models_; }
  const std::vector<std::string>& excluded() const { return excluded_; }
  const std::vector<std::string>& needed() const { return needed_; }
  const std::vector<Judge>& judges() const { return judges_; }
  const std::vector<Question>& questions() const { return questions_; }

  // For a flag, `texts` are empty.
  Status Set(const Texts& texts) const { return store_(texts); }

 private:
  Option& BetweenWholeNumbers(std::int64_t least, std::int64_t most);

  std::string short_name_, long_name_, positional_;
  std::string help_, heading_, type_ = "VALUE";
  Takes takes_;
  Store store_;
  bool required_ = false, names_models_ = false;
  char separator_ = 0;
  std::vector<std::string> choices_, suggestions_, excluded_, needed_;
  std::vector<Judge> judges_;
  std::vector<Question> questions_;
};

// Of a command, or of a subcommand of it. Variables that options are bound to must outlive it.
class Options {
 public:
  // `example` is one line or several, for the end of the help.
  explicit Options(std::string name, std::string summary = {}, std::string example = {});

  // The value goes to the variable, of any type that ParseValue takes (option_value.h).
  template <typename T>
  Option& Add(std::string_view names, T& value, std::string help) {
    return AddParsed(
        names, [&value](const std::string& text) { return ParseValue(text, value); },
        std::move(help));
  }
  // Takes several values, which replace those that the variable has.
  template <typename T>
  Option& Add(std::string_view names, std::vector<T>& values, std::string help) {
    return Append(names, Option::Takes::kSeveralValues, std::move(help),
                  [&values](const Option::Texts& texts) {
                    values.assign(texts.size(), T());
                    for (std::size_t i = 0; i < texts.size(); ++i) {
                      TROUPE_RETURN_IF_ERROR(ParseValue(texts[i], values[i]));
                    }
                    return OkStatus();
                  });
  }
  // `parse` takes the value, or says what is wrong with it.
  Option& AddParsed(std::string_view names, Option::Judge parse, std::string help);
  Option& AddFlag(std::string_view names, bool& value, std::string help);
  Option& AddFlag(std::string_view names, std::function<void()> given, std::string help);

  // What options added from here on stand under in the help.
  void Heading(std::string heading) { heading_ = std::move(heading); }

  // One of the subcommands must be given.
  Options& AddSubcommand(std::string name, std::string summary, std::string example = {});

  const std::string& name() const { return name_; }
  const std::string& summary() const { return summary_; }
  const std::string& example() const { return example_; }
  const std::list<Option>& all() const { return all_; }
  const std::list<Options>& subcommands() const { return subcommands_; }
  std::list<Options>& subcommands() { return subcommands_; }
  // By any of its names; null if there is none.
  const Option* Find(std::string_view name) const;

  // Whether the command line names this subcommand: for the parser to set.
  bool chosen() const { return chosen_; }
  void set_chosen(bool chosen) { chosen_ = chosen; }

 private:
  Option& Append(std::string_view names, Option::Takes takes, std::string help,
                 Option::Store store);

  std::string name_, summary_, example_, heading_ = "Options";
  std::list<Option> all_;  // references to them are kept
  std::list<Options> subcommands_;
  bool chosen_ = false;
};

}  // namespace troupe
