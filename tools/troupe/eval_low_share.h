// `troupe eval --find-low-share`: how much of a prompt's work low copies may do.
#pragma once

#include <string>

#include "lab/evaluation.h"
#include "troupe/eval_text.h"

namespace troupe {

// Prints its trials, or writes them to `json` as a record.
Status FindLowShare(Engine& engine, Session& session, const ScoredText& text,
                    const std::string& text_name, const EvaluationOptions& options,
                    double most_loss, const std::string& json);

}  // namespace troupe
