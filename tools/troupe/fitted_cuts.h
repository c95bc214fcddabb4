// What codes of cut prompts go by, as `troupe calibrate --cut` has left it beside a model, and the
// memory that it takes. The file is docs/formats/cuts.md's.
#pragma once

#include <string>
#include <vector>

#include "base/bytes.h"
#include "split/codec/cut_basis.h"
#include "store/model_fingerprint.h"

namespace troupe {

// Of codes that were fitted for cuts of this model; none where nobody has fitted any, and none,
// with a note, where the file is of no use.
std::vector<CutBasis> FittedBases(const std::string& model, const ModelFingerprint& fingerprint);

// Of reading and having them, at most; nothing where there is no such file.
Bytes BytesOfFittedBases(const std::string& model);

}  // namespace troupe
