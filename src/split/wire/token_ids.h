// Token ids as an end and its cloud say them: a list of numbers. Pure.
#pragma once

#include <troupe/request.h>

#include <limits>
#include <vector>

#include "base/json_value.h"

namespace troupe {

// In a reader of JSON (base/json_value.h).
inline std::vector<TokenId> ReadTokenIds(const JsonValue& list) {
  if (!list.IsArray()) list.Fail("an array of token ids");
  std::vector<TokenId> ids;
  ids.reserve(list.size());
  for (std::size_t i = 0; i < list.size(); ++i) {
    ids.push_back(static_cast<TokenId>(list.At(i).Count(0, std::numeric_limits<TokenId>::max())));
  }
  return ids;
}

}  // namespace troupe
