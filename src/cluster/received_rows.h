// Rows that came over the wire in the form that an expert's arithmetic reads.
#pragma once

#include <vector>

#include "cluster/wire/wire_rows.h"
#include "quant/activations.h"

namespace troupe {

class ReceivedRows {
 public:
  // Shows `rows` or a copy of them: valid until the next call, while their bytes are there. Floats
  // get their 8-bit form too, where the width has one.
  Activations Of(const WireRows& rows);

 private:
  std::vector<float> values_;
  std::vector<ActivationGroup> groups_;
};

}  // namespace troupe
