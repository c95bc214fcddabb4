// Renders templates for a test that compares them with another program's: reads a JSON object a
// line,
// {"template": ..., "values": {...}, "now": [year, month, day, hour, minute, second, weekday,
// yearday]}, and answers each with a line, {"text": ...} or {"error": ...}. Not part of the
// product.
#include <ctime>
#include <iostream>
#include <optional>
#include <string>

#include "base/json.h"
#include "text/jinja/template.h"

namespace troupe::jinja {
namespace {

std::tm ReadTime(const Json& parts) {
  const auto part = [&](std::size_t i) { return static_cast<int>(parts[i].AsCount()); };
  std::tm time{};
  time.tm_year = part(0) - 1900;
  time.tm_mon = part(1) - 1;
  time.tm_mday = part(2);
  time.tm_hour = part(3);
  time.tm_min = part(4);
  time.tm_sec = part(5);
  time.tm_wday = part(6);
  time.tm_yday = part(7);
  return time;
}

Result<std::string> RenderCase(const std::string& line) {
  const std::optional<Json> found = Json::Parse(line);
  if (!found) return InvalidArgument("a case that is no JSON");
  TROUPE_ASSIGN_OR_RETURN(const Template parsed,
                          Template::Parse(found->Find("template")->AsString()));
  TemplateValues values = TemplateValues::FromJson(*found->Find("values"));
  if (const Json* now = found->Find("now")) values.now = ReadTime(*now);
  return parsed.Render(values);
}

}  // namespace
}  // namespace troupe::jinja

int main() {
  std::string line;
  while (std::getline(std::cin, line)) {
    const auto text = troupe::jinja::RenderCase(line);
    const troupe::Json answer = text.ok() ? troupe::Json{{"text", *text}}
                                          : troupe::Json{{"error", text.status().message()}};
    std::cout << answer.Dump() << '\n' << std::flush;
  }
  return 0;
}
