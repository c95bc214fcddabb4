// Where the library's remarks go. The core never prints: it hands lines to one sink that the
// program sets; with none set they are dropped. Set it once, before threads start.
#pragma once

#include <fmt/format.h>

#include <functional>
#include <string_view>
#include <utility>

namespace troupe {

enum class LogLevel { kInfo, kWarning };
using LogSink = std::function<void(LogLevel, std::string_view line)>;

void SetLogSink(LogSink sink);
void LogLine(LogLevel level, std::string_view line);

template <typename... Args>
void LogInfo(fmt::format_string<Args...> format, Args&&... args) {
  LogLine(LogLevel::kInfo, fmt::format(format, std::forward<Args>(args)...));
}
template <typename... Args>
void LogWarning(fmt::format_string<Args...> format, Args&&... args) {
  LogLine(LogLevel::kWarning, fmt::format(format, std::forward<Args>(args)...));
}

}  // namespace troupe
