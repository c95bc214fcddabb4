#include "runtime/batch_forecast.h"

#include <algorithm>

namespace troupe {

double WaitSeconds(std::size_t before, std::uint32_t sequences, double request_seconds) {
  if (before < sequences) return 0;
  return request_seconds * static_cast<double>(before - sequences + 1) /
         static_cast<double>(sequences);
}

BatchForecast ForecastOf(const BatchCounters& counters, std::uint32_t sequences,
                         std::uint32_t prompt_rows) {
  BatchForecast forecast;
  const std::size_t before = counters.waiting + counters.reading + counters.decoding;
  forecast.wait_seconds = WaitSeconds(before, sequences, counters.request_seconds);
  const std::uint32_t rows = std::max(prompt_rows, 1U);
  forecast.read_seconds = counters.exact_speed.prompt.At(rows) / rows;
  // Then it is read among those of others.
  if (counters.to_read > 0) {
    forecast.read_seconds = std::max(forecast.read_seconds, counters.read_seconds);
  }
  const std::size_t together = std::min<std::size_t>(counters.decoding + 1, sequences);
  forecast.token_seconds = counters.exact_speed.decode.At(static_cast<double>(together));
  return forecast;
}

}  // namespace troupe
