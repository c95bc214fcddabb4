// Whether two models mean the same by a token id, so that one can guess for the other.
#pragma once

#include "base/status.h"
#include "text/vocab.h"

namespace troupe {

// As many tokens, the same special ones, and the same piece for each id; how text is cut into them
// is of no account. kInvalidArgument says the first that differs.
Status CheckSameVocabulary(const Vocab& model, const Vocab& draft);

}  // namespace troupe
