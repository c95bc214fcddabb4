// What decides, beside the model, --cache, --predict and --link, which bytes a run reads and when:
// where experts are read from, how the cache is shared, and what was learned that guesses begin
// with. In words; figures of two runs may stand in one file if these are the same. Files count by
// their bytes, not by their names: what lies under a name may have been made anew.
#pragma once

#include <string>

#include "base/status.h"
#include "runtime/engine_plan.h"

namespace troupe {

// 16 hex digits of the file's bytes.
Result<std::string> HashOfFile(const std::string& path);
// Of the file named, or of that beside the model, which need not exist: "none", as without one.
Result<std::string> HashOfProfile(const std::string& model, const std::string& named);
Result<std::string> HashOfBuddies(const std::string& model, const std::string& named);
Result<std::string> HashOfScoreTables(const std::string& model, const std::string& named);
// By its index, which has the checksum of every expert; "none" for no path: the GGUF file.
Result<std::string> HashOfContainer(const std::string& path);

// `container` as the plan has it.
Result<std::string> DescribeReading(const std::string& model, const std::string& container,
                                    const OffloadOptions& offload);

}  // namespace troupe
