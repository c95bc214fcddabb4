#include "troupe/write_parts.h"

#include <fmt/core.h>

#include "forge/repart.h"
#include "gguf/reader.h"
#include "troupe/counted.h"
#include "troupe/json_record.h"
#include "troupe/progress.h"

namespace troupe {

Status WriteParts(const std::string& in, const std::string& out, Bytes part_bytes,
                  const std::string& json) {
  TROUPE_ASSIGN_OR_RETURN(const GgufModel model, GgufModel::Open(in));
  ProgressBar bar("writing");
  TROUPE_ASSIGN_OR_RETURN(const RepartReport report,
                          Repart(model, out, part_bytes, bar.Callback()));
  bar.Clear();
  if (json != "-") {
    fmt::print("{}{}: {} in {}\n", report.files.front(),
               report.files.size() > 1 ? " and so on" : "", ToString(report.bytes),
               Counted(report.files.size(), "file"));
  }
  if (json.empty()) return OkStatus();
  return WriteJson({{"input", in},
                    {"files", report.files},
                    {"input_bytes", model.file_bytes().count()},
                    {"output_bytes", report.bytes.count()}},
                   json);
}

}  // namespace troupe
