// Which rows of a pass forecasts are made from: a forecast is a matrix product that only helps to
// read ahead, so a long pass is sampled.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "model/batch.h"

namespace troupe {

// Fills `rows` with as many rows of the batch as it has room for, in ascending order, and returns
// their number. Rows that decode go first, as what they wait for is waited for at every token; the
// rest is spread over the prompts, with the last row among them.
std::size_t ChooseForecastRows(Batch batch, std::size_t width, std::span<std::uint32_t> rows);

}  // namespace troupe
