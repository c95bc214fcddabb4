// Text from a file, a model or a network as it may be shown on a terminal. Control characters could
// clear the screen, move its cursor or send what the terminal answers as if a user had typed it.
#pragma once

#include <string>
#include <string_view>

namespace troupe {

// In one line: control characters are question marks, also those that UTF-8 writes in two bytes.
std::string Printable(std::string_view text);
// In any number of lines: line ends and tabs stay.
std::string PrintableText(std::string_view text);

}  // namespace troupe
