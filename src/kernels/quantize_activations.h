// Converts activations to the 8-bit form that block-quantized weights are multiplied with. The form
// and its scalar reference: quant/activations.h.
#pragma once

#include <cstddef>

#include "quant/activations.h"

namespace troupe {

// Fills x.codes and x.groups of tokens [first, first + count) from x.values. Tokens are apart from
// each other, so that threads may share the work.
void QuantizeActivations(const Activations& x, std::size_t first, std::size_t count);

}  // namespace troupe
