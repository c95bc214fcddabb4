#include "troupe/trace_flags.h"

#include "troupe/output_path.h"
#include "troupe/remark.h"

namespace troupe {

void TraceFlags::AddTo(Options& options) {
  options.Add("--trace", path_, "Record the router's choices, for `troupe replay` (- for stdout)")
      .Check(CheckOutput)
      .Type("FILE");
  options
      .Add("--trace-scores", scores_,
           "Router scores to record: those of the chosen experts, of all experts, or none (chosen)")
      .OneOf({"chosen", "all", "none"})
      .Needs("--trace")
      .Type("WHOSE");
  options.Add("--trace-domain", domain_, "Name of the text's domain, stored in the trace")
      .Needs("--trace")
      .Type("NAME");
}

std::optional<TraceScores> TraceFlags::scores() const {
  if (path_.empty()) return std::nullopt;
  if (scores_ == "none") return TraceScores::kNone;
  return scores_ == "all" ? TraceScores::kAll : TraceScores::kChosen;
}

Result<std::unique_ptr<TraceRecorder>> TraceFlags::Begin(Engine& engine) const {
  if (path_.empty()) return std::unique_ptr<TraceRecorder>();
  return TraceRecorder::Begin(engine, path_, *scores(), domain_);
}

Status TraceFlags::Finish(TraceRecorder* recorder) const {
  if (recorder == nullptr) return OkStatus();
  TROUPE_RETURN_IF_ERROR(recorder->Finish());
  Remark("[routing of {} tokens in {}]\n", recorder->tokens(),
         to_standard_output() ? "standard output" : path_);
  return OkStatus();
}

}  // namespace troupe
