// What is wrong with a text that is not JSON, in our words: "line 1, column 16: found 'olmoe',
// expected a value". The library's own words are for those who write parsers.
#pragma once

#include <string>
#include <string_view>

namespace troupe {

// Of the library's "[json.exception.parse_error.101] parse error at line 1, column 16: syntax error
// while parsing value - invalid literal; last read: 'o'". Words of another form stay as they are.
std::string ExplainJsonFault(std::string_view what);

}  // namespace troupe
