#include "troupe/trace_flags.h"

#include "troupe/remark.h"

namespace troupe {

void TraceFlags::AddTo(CLI::App& app) {
  CLI::Option* trace =
      app.add_option("--trace", path_, "Record what the router chooses, for `troupe replay`")
          ->type_name("FILE");
  app.add_option("--trace-scores", scores_,
                 "Scores in the trace: of the chosen experts, of all, or none (chosen)")
      ->check(CLI::IsMember({"chosen", "all", "none"}))
      ->needs(trace)
      ->type_name("WHOSE");
  app.add_option("--trace-domain", domain_, "What the text is about, as the trace will call it")
      ->needs(trace)
      ->type_name("NAME");
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
  Remark("[routing of {} tokens in {}]\n", recorder->tokens(), path_);
  return OkStatus();
}

}  // namespace troupe
