// Reads a template's tokens into its tree.
#pragma once

#include <string_view>

#include "base/status.h"
#include "text/jinja/tree.h"

namespace troupe::jinja {

// Beyond these a template is refused: no tree is deeper than the stack allows to walk.
inline constexpr std::size_t kLargestTemplate = std::size_t{4} << 20;  // bytes
inline constexpr int kDeepestTree = 150;

// Errors say "line 3: found 'endif', expected 'endfor'".
Result<Block> ParseTemplate(std::string_view source);

}  // namespace troupe::jinja
