#include "text/jinja/functions.h"

#include <algorithm>
#include <iterator>

#include "text/jinja/printing.h"

namespace troupe::jinja {
namespace {

constexpr std::string_view kFunctions[] = {"range", "namespace", "dict", "raise_exception"};

Result<Value> Range(const Arguments& arguments, Meter& meter) {
  const Values& given = arguments.positional;
  if (given.empty() || given.size() > 3 || !arguments.named.empty()) {
    return InvalidArgument("range(): 1 to 3 numbers expected");
  }
  for (const Value& bound : given) {
    if (!bound.IsIntegral()) return Misused(bound, "a whole number for range()");
  }
  const std::int64_t start = given.size() > 1 ? given[0].AsInt() : 0;
  const std::int64_t stop = given.size() > 1 ? given[1].AsInt() : given[0].AsInt();
  const std::int64_t step = given.size() > 2 ? given[2].AsInt() : 1;
  if (step == 0) return InvalidArgument("range(): a step of 0");
  return MakeRange({start, stop, step}, meter);
}

Result<Value> MakeDict(const Arguments& arguments, Meter& meter) {
  if (arguments.positional.size() > 1) return InvalidArgument("dict(): at most one value");
  DictBuilder dict;
  for (const Value& from : arguments.positional) {
    if (from.Is(Kind::kDict)) {
      for (const auto& [key, value] : from.AsDict().entries) {
        TROUPE_RETURN_IF_ERROR(dict.Set(key, value, meter));
      }
      continue;
    }
    TROUPE_ASSIGN_OR_RETURN(const Values pairs, Iterate(from, meter));
    for (const Value& pair : pairs) {
      TROUPE_ASSIGN_OR_RETURN(const Values parts, Iterate(pair, meter));
      if (parts.size() != 2) return InvalidArgument("dict(): pairs of key and value expected");
      TROUPE_RETURN_IF_ERROR(dict.Set(parts[0], parts[1], meter));
    }
  }
  for (const auto& [name, value] : arguments.named) {
    TROUPE_RETURN_IF_ERROR(dict.Set(name, value, meter));
  }
  return dict.Take();
}

Status RaiseException(const Arguments& arguments, Meter& meter) {
  ArgumentReader reader("raise_exception", arguments);
  const Value message = reader.Required("message");
  TROUPE_RETURN_IF_ERROR(reader.Finish());
  TROUPE_ASSIGN_OR_RETURN(const MarkedText text, Print(message, meter));
  return InvalidArgument("{}", text.bytes());
}

}  // namespace

bool HasFunction(std::string_view name, bool has_time) {
  if (name == "strftime_now") return has_time;
  return std::find(std::begin(kFunctions), std::end(kFunctions), name) != std::end(kFunctions);
}

Result<Value> CallFunction(std::string_view name, const Arguments& arguments,
                           const std::optional<std::tm>& now, Meter& meter) {
  if (name == "range") return Range(arguments, meter);
  if (name == "dict") return MakeDict(arguments, meter);
  if (name == "raise_exception") return RaiseException(arguments, meter);
  ArgumentReader reader(name, arguments);
  const MarkedText* format = reader.Text("format");
  TROUPE_RETURN_IF_ERROR(reader.Finish());
  if (format == nullptr || !now) return InvalidArgument("strftime_now(): a format expected");
  TROUPE_ASSIGN_OR_RETURN(std::string text, FormatTime(format->bytes(), *now));
  TROUPE_RETURN_IF_ERROR(meter.MakesString(text.size()));
  return Value::String(std::move(text));
}

Result<std::string> FormatTime(const std::string& format, const std::tm& time) {
  constexpr std::string_view kMonths[] = {"January",   "February", "March",    "April",
                                          "May",       "June",     "July",     "August",
                                          "September", "October",  "November", "December"};
  constexpr std::string_view kDays[] = {"Sunday",   "Monday", "Tuesday", "Wednesday",
                                        "Thursday", "Friday", "Saturday"};
  const std::string_view month = kMonths[static_cast<std::size_t>(time.tm_mon) % 12];
  const std::string_view day = kDays[static_cast<std::size_t>(time.tm_wday) % 7];
  const int hour = time.tm_hour % 12 == 0 ? 12 : time.tm_hour % 12;
  std::string out;
  for (std::size_t at = 0; at < format.size(); ++at) {
    if (format[at] != '%' || at + 1 == format.size()) {
      out += format[at];
      continue;
    }
    switch (format[++at]) {
      case 'Y':
        out += std::to_string(time.tm_year + 1900);
        break;
      case 'y':
        out += fmt::format("{:02}", time.tm_year % 100);
        break;
      case 'm':
        out += fmt::format("{:02}", time.tm_mon + 1);
        break;
      case 'd':
        out += fmt::format("{:02}", time.tm_mday);
        break;
      case 'H':
        out += fmt::format("{:02}", time.tm_hour);
        break;
      case 'I':
        out += fmt::format("{:02}", hour);
        break;
      case 'M':
        out += fmt::format("{:02}", time.tm_min);
        break;
      case 'S':
        out += fmt::format("{:02}", time.tm_sec);
        break;
      case 'j':
        out += fmt::format("{:03}", time.tm_yday + 1);
        break;
      case 'p':
        out += time.tm_hour < 12 ? "AM" : "PM";
        break;
      case 'B':
        out += month;
        break;
      case 'b':
        out += month.substr(0, 3);
        break;
      case 'A':
        out += day;
        break;
      case 'a':
        out += day.substr(0, 3);
        break;
      case 'F':
        out += fmt::format("{}-{:02}-{:02}", time.tm_year + 1900, time.tm_mon + 1, time.tm_mday);
        break;
      case 'T':
        out += fmt::format("{:02}:{:02}:{:02}", time.tm_hour, time.tm_min, time.tm_sec);
        break;
      case '%':
        out += '%';
        break;
      default:
        return Error(Code::kUnimplemented, "strftime_now(): '%{}' is not known", format[at]);
    }
  }
  return out;
}

}  // namespace troupe::jinja
