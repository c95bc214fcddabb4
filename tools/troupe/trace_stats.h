// `troupe trace stats`: a trace's statistics as lines, as a record, and as a page of pictures.
#pragma once

#include <string>

#include "trace/trace_statistics.h"
#include "troupe/json_record.h"

namespace troupe {

void PrintStatistics(const std::string& trace, const TraceStatistics& statistics);
Json StatisticsRecord(const std::string& trace, const TraceStatistics& statistics);
std::string StatisticsPage(const std::string& trace, const TraceStatistics& statistics);

}  // namespace troupe
