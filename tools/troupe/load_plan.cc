#include "troupe/load_plan.h"

#include <algorithm>
#include <cmath>

#include "base/json_value.h"
#include "base/rng.h"
#include "troupe/option_value.h"

namespace troupe {
namespace {

constexpr std::uint64_t kMostLength = std::uint64_t{1} << 30;

std::vector<std::string> FieldsOf(std::string_view line) {
  std::vector<std::string> fields(1);
  for (const char c : line) {
    if (c == ',') {
      fields.emplace_back();
    } else if (c != '\r') {
      fields.back() += c;
    }
  }
  return fields;
}

std::string_view TakeLineOf(std::string_view& text) {
  const std::size_t end = std::min(text.find('\n'), text.size());
  const std::string_view line = text.substr(0, end);
  text.remove_prefix(std::min(end + 1, text.size()));
  return line;
}

Result<RequestLengths> LengthsOfJson(const std::string& name, std::string_view line) {
  return ReadJson<RequestLengths>(name, line, [](const JsonValue& json) {
    return RequestLengths{.prompt = json.At("input_length").Count(1, kMostLength),
                          .answer = json.At("output_length").Count(1, kMostLength)};
  });
}

struct Columns {
  std::size_t prompt = 0, answer = 0;
};

Result<Columns> ColumnsOf(const std::string& name, std::string_view line) {
  const std::vector<std::string> fields = FieldsOf(line);
  const auto prompt = std::ranges::find(fields, "ContextTokens");
  const auto answer = std::ranges::find(fields, "GeneratedTokens");
  if (prompt == fields.end() || answer == fields.end()) {
    return InvalidArgument("{}: no columns ContextTokens and GeneratedTokens in its first line",
                           name);
  }
  return Columns{.prompt = static_cast<std::size_t>(prompt - fields.begin()),
                 .answer = static_cast<std::size_t>(answer - fields.begin())};
}

Result<RequestLengths> LengthsOfFields(const std::string& name, std::string_view line,
                                       const Columns& columns) {
  const std::vector<std::string> fields = FieldsOf(line);
  if (fields.size() <= std::max(columns.prompt, columns.answer)) {
    return InvalidArgument("{}: {} fields, expected as many as the first line has", name,
                           fields.size());
  }
  Result<std::uint64_t> prompt = ParseUnsigned(fields[columns.prompt], kMostLength);
  Result<std::uint64_t> answer = ParseUnsigned(fields[columns.answer], kMostLength);
  for (const auto* const length : {&prompt, &answer}) {
    if (!length->ok()) return Status(length->status()).WithContext(name);
    if (**length == 0) return InvalidArgument("{}: a length of 0 tokens", name);
  }
  return RequestLengths{.prompt = *prompt, .answer = *answer};
}

}  // namespace

Result<LengthRange> ParseLengthRange(const std::string& text) {
  const std::size_t dots = text.find("..");
  const std::string least = text.substr(0, dots);
  const std::string most = dots == text.npos ? least : text.substr(dots + 2);
  const Result<std::uint64_t> first = ParseUnsigned(least, kMostLength);
  const Result<std::uint64_t> last = ParseUnsigned(most, kMostLength);
  if (!first.ok() || !last.ok() || *first == 0 || *last < *first) {
    return InvalidArgument("'{}' found, expected two numbers of tokens like 32..256, or one", text);
  }
  return LengthRange{.least = *first, .most = *last};
}

Result<std::vector<RequestLengths>> ParseLengths(const std::string& name, std::string_view text) {
  std::vector<RequestLengths> all;
  std::optional<Columns> columns;
  for (std::size_t number = 1; !text.empty(); ++number) {
    const std::string_view line = TakeLineOf(text);
    if (line.find_first_not_of(" \t\r") == line.npos) continue;
    const std::string place = name + ", line " + std::to_string(number);
    if (line.starts_with('{')) {
      TROUPE_ASSIGN_OR_RETURN(const RequestLengths lengths, LengthsOfJson(place, line));
      all.push_back(lengths);
    } else if (!columns) {
      TROUPE_ASSIGN_OR_RETURN(columns, ColumnsOf(name, line));
    } else {
      TROUPE_ASSIGN_OR_RETURN(const RequestLengths lengths, LengthsOfFields(place, line, *columns));
      all.push_back(lengths);
    }
  }
  if (all.empty()) return InvalidArgument("{}: no lengths in it", name);
  return all;
}

RequestLengths FitTo(RequestLengths lengths, std::size_t context) {
  lengths.answer =
      std::clamp<std::size_t>(lengths.answer, 1, std::max<std::size_t>(1, context / 2));
  const std::size_t room = context - std::min(context, lengths.answer);
  lengths.prompt = std::clamp<std::size_t>(lengths.prompt, 1, std::max<std::size_t>(1, room));
  return lengths;
}

std::vector<PlannedRequest> PlanLoad(const LoadOptions& options) {
  Rng rng(options.seed);
  std::vector<PlannedRequest> plan(options.requests);
  double now = 0;
  for (PlannedRequest& request : plan) {
    if (options.lengths.empty()) {
      request.lengths = {.prompt = options.prompt.least +
                                   rng.Below(options.prompt.most - options.prompt.least + 1),
                         .answer = options.answer};
    } else {
      request.lengths = options.lengths[rng.Below(options.lengths.size())];
    }
    if (options.context) {
      const RequestLengths fitting = FitTo(request.lengths, *options.context);
      request.cut = fitting != request.lengths;
      request.lengths = fitting;
    }
    request.seed = rng.Next() >> 32;
    // Times between arrivals of a Poisson process are exponential.
    const double uniform = rng.Uniform();
    if (options.rate) now += -std::log1p(-uniform) / *options.rate;
    request.at = now;
  }
  return plan;
}

std::size_t CutIn(std::span<const PlannedRequest> plan) {
  return static_cast<std::size_t>(std::ranges::count_if(plan, &PlannedRequest::cut));
}

}  // namespace troupe
