#include "troupe/option_table.h"

#include <algorithm>
#include <utility>

namespace troupe {

Option::Option(std::string_view names, std::string help, std::string heading, Takes takes,
               Store store)
    : help_(std::move(help)),
      heading_(std::move(heading)),
      takes_(takes),
      store_(std::move(store)) {
  while (!names.empty()) {
    const std::size_t comma = std::min(names.find(','), names.size());
    const std::string_view name = names.substr(0, comma);
    (name.starts_with("--")  ? long_name_
     : name.starts_with('-') ? short_name_
                             : positional_) = name;
    names.remove_prefix(std::min(comma + 1, names.size()));
  }
  TROUPE_CHECK(!name().empty());
}

const std::string& Option::name() const {
  if (!positional_.empty()) return positional_;
  return long_name_.empty() ? short_name_ : long_name_;
}

Option& Option::Required() {
  required_ = true;
  return *this;
}

Option& Option::Type(std::string name) {
  type_ = std::move(name);
  return *this;
}

Option& Option::SeparatedBy(char separator) {
  TROUPE_CHECK(takes_ == Takes::kSeveralValues);
  separator_ = separator;
  return *this;
}

Option& Option::OneOf(std::vector<std::string> choices) {
  choices_ = std::move(choices);
  return *this;
}

Option& Option::Suggest(std::vector<std::string> values) {
  suggestions_ = std::move(values);
  return *this;
}

Option& Option::NamesModels() {
  names_models_ = true;
  return *this;
}

Option& Option::Excludes(std::string other) {
  excluded_.push_back(std::move(other));
  return *this;
}

Option& Option::Needs(std::string other) {
  needed_.push_back(std::move(other));
  return *this;
}

Option& Option::Check(Judge judge) {
  judges_.push_back(std::move(judge));
  return *this;
}

Option& Option::Answers(std::string value, std::function<std::string()> answer) {
  questions_.push_back({std::move(value), std::move(answer)});
  return *this;
}

Option& Option::BetweenWholeNumbers(std::int64_t least, std::int64_t most) {
  return Check([least, most](const std::string& text) -> Status {
    if (ParseSigned(text, least, most).ok()) return OkStatus();
    return InvalidArgument("'{}' found, expected a number from {} to {}", text, least, most);
  });
}

Option& Option::Between(double least, double most) {
  return Check([least, most](const std::string& text) -> Status {
    double value = 0;
    if (ParseValue(text, value).ok() && value >= least && value <= most) return OkStatus();
    return InvalidArgument("'{}' found, expected a number from {} to {}", text, least, most);
  });
}

Options::Options(std::string name, std::string summary, std::string example)
    : name_(std::move(name)), summary_(std::move(summary)), example_(std::move(example)) {}

Option& Options::Append(std::string_view names, Option::Takes takes, std::string help,
                        Option::Store store) {
  Option option(names, std::move(help), heading_, takes, std::move(store));
  for (const std::string* name :
       {&option.short_name(), &option.long_name(), &option.positional()}) {
    TROUPE_CHECK(name->empty() || Find(*name) == nullptr);
  }
  return all_.emplace_back(std::move(option));
}

Option& Options::AddParsed(std::string_view names, Option::Judge parse, std::string help) {
  return Append(
      names, Option::Takes::kOneValue, std::move(help),
      [parse = std::move(parse)](const Option::Texts& texts) { return parse(texts.back()); });
}

Option& Options::AddFlag(std::string_view names, bool& value, std::string help) {
  return AddFlag(
      names, [&value] { value = true; }, std::move(help));
}

Option& Options::AddFlag(std::string_view names, std::function<void()> given, std::string help) {
  return Append(names, Option::Takes::kNothing, std::move(help),
                [given = std::move(given)](const Option::Texts&) {
                  given();
                  return OkStatus();
                });
}

Options& Options::AddSubcommand(std::string name, std::string summary, std::string example) {
  return subcommands_.emplace_back(std::move(name), std::move(summary), std::move(example));
}

const Option* Options::Find(std::string_view name) const {
  const auto found = std::ranges::find_if(all_, [name](const Option& option) {
    return option.short_name() == name || option.long_name() == name || option.positional() == name;
  });
  return found == all_.end() ? nullptr : &*found;
}

}  // namespace troupe
