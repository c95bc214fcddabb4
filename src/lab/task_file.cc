#include "lab/task_file.h"

#include <fmt/format.h>

#include "base/json_value.h"
#include "io/read_whole.h"

namespace troupe {
namespace {

constexpr std::size_t kMostOptions = 64;
constexpr std::string_view kLayouts =
    "query, choices, gold; or context_options, continuation, gold; or question, options, answer; "
    "or context, continuation";

std::string_view TrimEnd(std::string_view text) {
  const std::size_t last = text.find_last_not_of(" \t\r\n");
  return last == text.npos ? std::string_view() : text.substr(0, last + 1);
}

std::string_view Trim(std::string_view text) {
  const std::size_t first = text.find_first_not_of(" \t\r\n");
  return first == text.npos ? std::string_view() : TrimEnd(text.substr(first));
}

// One space parts an answer from what it follows, whichever of the two brought it.
std::string Continuation(const JsonValue& text) {
  const std::string found = text.String();
  const std::string_view trimmed = Trim(found);
  if (trimmed.empty()) text.Fail("a text to score");
  return fmt::format(" {}", trimmed);
}

// As the task sets that leave it out say it elsewhere: "Question: ..." is followed by "Answer:".
std::string Prompt(const std::string& query) {
  const std::string_view trimmed = TrimEnd(query);
  const bool asks = trimmed.starts_with("Question:") || trimmed.starts_with("Passage:");
  return std::string(trimmed) + (asks && !trimmed.ends_with(':') ? "\nAnswer:" : "");
}

std::size_t Gold(const JsonValue& line, std::size_t options) {
  return static_cast<std::size_t>(line.At("gold").Count(0, options - 1));
}

JsonValue OptionsIn(const JsonValue& line, const char* key) {
  const JsonValue options = line.At(key);
  if (!options.IsArray() || options.size() < 2 || options.size() > kMostOptions) {
    options.Fail(fmt::format("2 to {} texts to choose from", kMostOptions));
  }
  return options;
}

TaskItem Choice(const JsonValue& line) {
  const JsonValue choices = OptionsIn(line, "choices");
  const std::string context = Prompt(line.At("query").String());
  TaskItem item;
  for (std::size_t i = 0; i < choices.size(); ++i) {
    item.options.push_back({.context = context, .continuation = Continuation(choices.At(i))});
  }
  item.gold = Gold(line, choices.size());
  return item;
}

// The same words after different beginnings.
TaskItem Schema(const JsonValue& line) {
  const JsonValue contexts = OptionsIn(line, "context_options");
  const std::string continuation = Continuation(line.At("continuation"));
  TaskItem item;
  for (std::size_t i = 0; i < contexts.size(); ++i) {
    item.options.push_back(
        {.context = std::string(TrimEnd(contexts.At(i).String())), .continuation = continuation});
  }
  item.gold = Gold(line, contexts.size());
  return item;
}

// "A. one\nB. two" with the answer "B. two": the words are scored, not the letters.
TaskItem Lettered(const JsonValue& line) {
  const std::string context =
      fmt::format("Question: {}\nAnswer:", Trim(line.At("question").String()));
  const JsonValue list = line.At("options");
  const std::string options = list.String(), answer(Trim(line.At("answer").String()));
  TaskItem item;
  bool found = false;
  std::size_t at = 0;
  while (at < options.size()) {
    const char letter = static_cast<char>('A' + item.options.size());
    const std::string next = fmt::format("\n{}. ", static_cast<char>(letter + 1));
    const std::string_view rest = std::string_view(options).substr(at);
    if (!rest.starts_with(fmt::format("{}. ", letter)) || item.options.size() == kMostOptions) {
      list.Fail(fmt::format("'{}. ' at byte {}", letter, at));
    }
    const std::size_t end = std::min(rest.find(next), rest.size());
    const std::string_view option = Trim(rest.substr(0, end)), words = Trim(option.substr(2));
    if (words.empty()) list.Fail(fmt::format("words after '{}. '", letter));
    if (option == answer) {
      item.gold = item.options.size();
      found = true;
    }
    item.options.push_back({.context = context, .continuation = fmt::format(" {}", words)});
    at += end == rest.size() ? end : end + 1;
  }
  if (item.options.size() < 2) list.Fail("at least two options");
  if (!found) line.At("answer").Fail("one of the options");
  return item;
}

TaskItem Continued(const JsonValue& line) {
  TaskItem item;
  item.options.push_back({.context = std::string(TrimEnd(line.At("context").String())),
                          .continuation = Continuation(line.At("continuation"))});
  return item;
}

TaskItem ItemOf(const JsonValue& whole) {
  const JsonValue line(whole.raw(), "the line");
  if (!line.IsObject()) line.Fail("an object");
  if (line.Has("query") && line.Has("choices")) return Choice(line);
  if (line.Has("context_options")) return Schema(line);
  if (line.Has("question") && line.Has("options")) return Lettered(line);
  if (line.Has("context") && line.Has("continuation")) return Continued(line);
  std::vector<std::string> fields;
  for (const auto& [key, value] : line.raw().members()) fields.push_back(key);
  const std::string found =
      fields.empty() ? "no fields" : fmt::format("the fields {}", fmt::join(fields, ", "));
  JsonValue::Refuse(fmt::format("found {}, expected {}", found, kLayouts));
}

}  // namespace

Result<TaskFile> ParseTaskFile(const std::string& path, std::string_view text) {
  TaskFile file{.path = path, .items = {}};
  std::size_t number = 0;
  while (!text.empty()) {
    const std::size_t end = std::min(text.find('\n'), text.size());
    const std::string_view line = text.substr(0, end);
    text.remove_prefix(std::min(end + 1, text.size()));
    ++number;
    if (Trim(line).empty()) continue;
    Result<TaskItem> item =
        ReadJson<TaskItem>(fmt::format("{}, line {}", path, number), line, ItemOf);
    if (!item.ok()) return item.status();
    item->line = number;
    file.items.push_back(std::move(*item));
  }
  if (file.items.empty()) return InvalidArgument("{}: holds no line, expected questions", path);
  return file;
}

Result<TaskFile> ReadTaskFile(const std::string& path) {
  TROUPE_ASSIGN_OR_RETURN(const std::string text, ReadWhole(path));
  return ParseTaskFile(path, text);
}

}  // namespace troupe
