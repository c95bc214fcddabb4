// Score tables as a file beside the model (docs/formats/scores.md): what calibration learned for
// `--predict scores`, which a run begins with. It never changes an answer.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/status.h"
#include "expert/forecast/score_tables.h"

namespace troupe {

struct ModelConfig;

// Whose tables they are to be.
struct ScoreTablesOf {
  std::string fingerprint;  // of the model; empty: whichever has this shape
  ExpertGrid grid;
  std::uint32_t experts_per_token = 0;
  std::vector<std::uint32_t> layers;  // that have experts, rising
};

ScoreTablesOf TablesOfModel(const ModelConfig& config, std::string fingerprint);

// "m.gguf" gives "m.scores".
std::string ScoresPathFor(std::string_view model_path);

Status SaveScoreTables(const ScoreTables& tables, const std::string& fingerprint,
                       const std::string& path);
// kAlreadyExists: of another model; kFailedPrecondition: of another version; kDataLoss: damaged;
// kResourceExhausted: larger than any model's.
// Takes no memory but that of the tables, and that only once their size is known to be right.
Result<ScoreTables> LoadScoreTables(const std::string& path, const ScoreTablesOf& of);

}  // namespace troupe
