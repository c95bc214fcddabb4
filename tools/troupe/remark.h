// Lines for people, on stderr: the figures of a run, the plan, errors. A stderr that cannot be
// written to loses them and changes nothing else.
#pragma once

#include <fmt/core.h>

#include <cstdio>
#include <string>
#include <utility>

namespace troupe {

template <typename... Args>
void Remark(fmt::format_string<Args...> format, Args&&... args) {
  const std::string text = fmt::format(format, std::forward<Args>(args)...);
  std::fwrite(text.data(), 1, text.size(), stderr);
}

}  // namespace troupe
