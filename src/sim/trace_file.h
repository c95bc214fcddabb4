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

// A whole file; decompressed if its name ends in ".zst". At most a gigabyte.
Result<std::string> ReadWhole(const std::string& path);

// X.meta.json, and beside it the file of ids that it names: uint8 of [layer][token][k].
Result<RoutingTrace> ReadRoutingTrace(const std::string& meta_path);

// Rows "model,task,layer,expert,count" of one model and task: [layer][expert].
Result<std::vector<std::vector<double>>> ReadExpertCounts(const std::string& path,
                                                          const std::string& model,
                                                          const std::string& task);

// Mooncake's JSON lines (timestamp in ms, input_length, output_length) or Azure's CSV (TIMESTAMP,
// ContextTokens, GeneratedTokens), by the name's ending; times count from the first.
Result<std::vector<RecordedRequest>> ReadRequests(const std::string& path);

}  // namespace troupe
