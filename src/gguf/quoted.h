// Names from a file as errors show them: in quotes, on one line and not too long, whatever bytes
// they are made of.
#pragma once

#include <string>
#include <string_view>

namespace troupe {

// 'blk.0.attn_q.weight'; control characters and bytes past ASCII as \x1b, the rest after 80 as ...
std::string Quoted(std::string_view text);

}  // namespace troupe
