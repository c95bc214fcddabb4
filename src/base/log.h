// Where the library's warnings go. The core never prints: it hands lines to one sink that the
// program sets; with none set they are dropped. Set it once, before threads start.
#pragma once

#include <fmt/core.h>

#include <functional>
#include <string_view>
#include <utility>

namespace troupe {

using WarningSink = std::function<void(std::string_view line)>;

void SetWarningSink(WarningSink sink);
void WarnOf(std::string_view line);

template <typename... Args>
void LogWarning(fmt::format_string<Args...> format, Args&&... args) {
  WarnOf(fmt::format(format, std::forward<Args>(args)...));
}

}  // namespace troupe
