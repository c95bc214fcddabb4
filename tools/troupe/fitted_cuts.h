// What codes of cut prompts go by, as `troupe calibrate --cut` has left it beside a model, and the
// memory that it takes. The file is docs/formats/cuts.md's.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "base/bytes.h"
#include "split/codec/cut_basis.h"
#include "split/codec/cut_file.h"
#include "store/model_fingerprint.h"

namespace troupe {

// For cuts of this model; none where nobody has fitted any, and none, with a note, where the file
// is of no use.
std::vector<PricedCut> FittedCuts(const std::string& model, const ModelFingerprint& fingerprint);
std::vector<CutBasis> BasesOf(std::vector<PricedCut> cuts);
// By layer, of each cut the codes worth a try that lose at most this share of perplexity; none of a
// cut that has no such code.
std::map<std::uint32_t, std::vector<TriedCode>> CodesWithin(const std::vector<PricedCut>& cuts,
                                                            double most_loss);

// Of reading and having them, at most; nothing where there is no such file.
Bytes BytesOfFittedBases(const std::string& model);

}  // namespace troupe
