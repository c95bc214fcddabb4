// Reads recorded routing and recorded requests in the layouts in which they were published (the
// report says where to get them), plain or compressed with zstd.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/status.h"
#include "sim/routing_trace.h"
#include "sim/workload.h"

namespace troupe {

// A trace (docs/formats/trace.md), whose answers are what was decoded, or a published recording by
// its X.meta.json.
Result<RoutingTrace> ReadRoutingTrace(const std::string& path);

// Rows "model,task,layer,expert,count" of one model and task: [layer][expert].
Result<std::vector<std::vector<double>>> ReadExpertCounts(const std::string& path,
                                                          const std::string& model,
                                                          const std::string& task);

// Mooncake's JSON lines (timestamp in ms, input_length, output_length) or Azure's CSV (TIMESTAMP,
// ContextTokens, GeneratedTokens), by the name's ending; times count from the first.
Result<std::vector<RecordedRequest>> ReadRequests(const std::string& path);

}  // namespace troupe
