// `troupe trace stats`: a trace's statistics as lines, as a record, and as a page of pictures.
#pragma once

#include <cstddef>
#include <string>

#include "trace/trace_statistics.h"
#include "troupe/json_record.h"

namespace troupe {

inline std::size_t Layers(const TraceStatistics& s) { return s.header().moe_layers.size(); }
// That an expert is chosen for a token, were all as popular.
inline double Chance(const TraceStatistics& s) {
  return static_cast<double>(s.header().top_k) / s.header().experts;
}

void PrintStatistics(const std::string& trace, const TraceStatistics& statistics);
Json StatisticsRecord(const std::string& trace, const TraceStatistics& statistics);
std::string StatisticsPage(const std::string& trace, const TraceStatistics& statistics);

}  // namespace troupe
