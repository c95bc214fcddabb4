// What `troupe eval` says of a scored text, for people and for --json.
#pragma once

#include <string>

#include "lab/evaluation.h"
#include "troupe/json_record.h"

namespace troupe {

// Members `name` and `name`_interval; a limit without an end becomes null.
void AddInterval(Json& record, const std::string& name, const Interval& interval);

// "0.0123 (0.0101 to 0.0145)", each number times `scale`.
std::string ToString(const Interval& interval, double scale = 1);

void Print(const Evaluation& evaluation);
void AddEvaluation(Json& record, const Evaluation& evaluation);

}  // namespace troupe
