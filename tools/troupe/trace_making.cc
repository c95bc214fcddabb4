#include "troupe/trace_making.h"

#include <filesystem>

#include "base/bytes.h"
#include "troupe/options.h"
#include "troupe/remark.h"

namespace troupe {

void WarnOfDamage(const TraceReader& reader) {
  if (!reader.damage().any()) return;
  Remark("warning: {}: {}\n", reader.name(), ToString(reader.damage()));
}

void TraceOutput::AddTo(Options& options) {
  AddOutputOption(options, "-o,--out", path_, "Trace to write").Required();
}

Result<TraceWriter> TraceOutput::Create(const TraceHeader& header) const {
  TROUPE_ASSIGN_OR_RETURN(std::unique_ptr<TraceSink> sink, WholeFile(path_));
  return TraceWriter::Create(std::move(sink), header);
}

Status TraceOutput::Finish(TraceWriter& writer) const {
  if (writer.tokens() == 0) return InvalidArgument("{}: no token would be in it", path_);
  TROUPE_RETURN_IF_ERROR(writer.Finish());
  Remark("{}: {} tokens, {}\n", path_, writer.tokens(),
         ToString(Bytes(std::filesystem::file_size(path_))));
  return OkStatus();
}

Status TraceOutput::WriteCut(const std::string& from, const TraceCut& cut,
                             const std::function<void(TraceHeader&)>& change) const {
  TROUPE_ASSIGN_OR_RETURN(TraceReader reader, TraceReader::Open(from));
  Result<TraceHeader> header = CutHeader(reader.header(), cut);
  if (!header.ok()) return Status(header.status()).WithContext(from);
  if (change) change(*header);
  TROUPE_ASSIGN_OR_RETURN(TraceWriter writer, Create(*header));
  TROUPE_RETURN_IF_ERROR(CutTrace(reader, cut, writer));
  WarnOfDamage(reader);
  return Finish(writer);
}

void TraceScoresFlag::AddTo(Options& options) {
  options
      .Add("--scores", kept_,
           "Scores to keep: all as f32 or f16, only those of chosen experts, or none")
      .OneOf({"f32", "f16", "chosen", "none"})
      .Type("WHAT");
}

TraceCut TraceScoresFlag::In(TraceCut cut) const {
  if (kept_ == "none") cut.drop_scores = true;
  if (kept_ == "chosen") cut.drop_all_scores = true;
  if (kept_ == "f32") cut.score_type = ScoreType::kF32;
  if (kept_ == "f16") cut.score_type = ScoreType::kF16;
  return cut;
}

}  // namespace troupe
