// Which tokens end an answer. Files name one or two of them; the others are known by their texts,
// which a model's authors choose from a small stock.
#pragma once

#include <vector>

#include "text/vocab.h"

namespace troupe {

// One flag a token of a valid vocabulary.
std::vector<bool> FindEndTokens(const Vocab& vocab);

}  // namespace troupe
