#include "troupe/config_options.h"

#include <fmt/format.h>

#include <algorithm>
#include <optional>
#include <string>
#include <vector>

#include "base/check.h"
#include "troupe/did_you_mean.h"

namespace troupe {
namespace {

// An option that the file sets, with all of its values.
struct Setting {
  const Option* option;
  std::size_t line;  // the first
  Option::Texts texts;
};

std::string NameInFile(const Option& option) { return option.long_name().substr(2); }

Status NoOption(const std::string& name, const Options& options) {
  std::vector<std::string> names;
  for (const Option& option : options.all()) {
    if (!option.long_name().empty()) names.push_back(NameInFile(option));
  }
  const std::optional<std::string> meant = DidYouMean(name, names);
  return InvalidArgument("there is no option '{}'{}", name,
                         meant ? fmt::format("; did you mean '{}'?", *meant) : "");
}

Status CheckValue(const Option& option, const std::string& value) {
  const auto& choices = option.choices();
  if (!choices.empty() && std::ranges::find(choices, value) == choices.end()) {
    return InvalidArgument("'{}' found, expected one of {}", value, fmt::join(choices, ", "));
  }
  for (const Option::Question& question : option.questions()) {
    if (value == question.value) {
      return InvalidArgument("'{}' is a question for the command line", value);
    }
  }
  for (const Option::Judge& judge : option.judges()) TROUPE_RETURN_IF_ERROR(judge(value));
  return OkStatus();
}

// What the line says, beside what the lines before it have said.
Status Add(const ConfigLine& line, const Options& options, std::vector<Setting>& settings) {
  const Option* const option = options.Find("--" + line.name);
  if (option == nullptr) return NoOption(line.name, options);
  const auto context = [&](Status status) {
    return status.ok() ? status : std::move(status).WithContext(line.name);
  };
  if (option->takes() == Option::Takes::kNothing) {
    if (line.value != "true" && line.value != "false") {
      return context(InvalidArgument("'{}' found, expected true or false", line.value));
    }
  } else {
    TROUPE_RETURN_IF_ERROR(context(CheckValue(*option, line.value)));
  }
  const auto before = std::ranges::find(settings, option, &Setting::option);
  if (before == settings.end()) {
    settings.push_back({.option = option, .line = line.number, .texts = {line.value}});
    return OkStatus();
  }
  if (option->takes() != Option::Takes::kSeveralValues) {
    return context(InvalidArgument("line {} has a value already", before->line));
  }
  before->texts.push_back(line.value);
  return OkStatus();
}

bool Names(const std::vector<std::string>& names, const Option& option) {
  return std::ranges::find(names, option.long_name()) != names.end();
}

// Options that cannot stand together, or not alone; `all` are those of the file and those given.
Status CheckCompany(const Option& option, std::span<const Option* const> all) {
  for (const Option* const other : all) {
    if (Names(option.excluded(), *other) || Names(other->excluded(), option)) {
      return InvalidArgument("{} excludes {}", NameInFile(option), other->long_name());
    }
  }
  for (const std::string& needed : option.needed()) {
    if (std::ranges::find(all, needed, &Option::long_name) == all.end()) {
      return InvalidArgument("{} requires {}", NameInFile(option), needed);
    }
  }
  return OkStatus();
}

}  // namespace

Status ApplyConfig(const Config& config, const Options& options,
                   std::span<const Option* const> given) {
  std::vector<Setting> settings;
  for (const ConfigLine& line : config.lines) {
    const Status added = Add(line, options, settings);
    if (!added.ok()) return AtLine(config, line.number, added);
  }
  std::erase_if(settings, [&](const Setting& setting) {
    const bool off =
        setting.option->takes() == Option::Takes::kNothing && setting.texts.front() == "false";
    return off || std::ranges::find(given, setting.option) != given.end();
  });
  std::vector<const Option*> all(given.begin(), given.end());
  for (const Setting& setting : settings) all.push_back(setting.option);
  for (const Setting& setting : settings) {
    const Option& option = *setting.option;
    TROUPE_CHECK(option.separator() == 0);
    Status status = CheckCompany(option, all);
    if (status.ok()) {
      status = option.Set(setting.texts);
      if (!status.ok()) status = std::move(status).WithContext(NameInFile(option));
    }
    if (!status.ok()) return AtLine(config, setting.line, status);
  }
  return OkStatus();
}

}  // namespace troupe
