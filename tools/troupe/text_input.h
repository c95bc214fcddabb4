// What a command reads to go on from, to score or to learn from: a text as it is, or token ids.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "base/status.h"
#include "text/vocab.h"

namespace troupe {

// "1,306,55", or with blanks and line ends as well or instead; the error quotes what is no token
// id.
Result<std::vector<TokenId>> ParseTokenIds(const std::string& text);

// The whole of a text file, pipe or device; "-" is standard input. Fails, without reading it all,
// if it has more than `most` bytes.
Result<std::string> ReadTextFile(const std::string& path,
                                 std::size_t most = std::string().max_size());

}  // namespace troupe
