#include "cluster/spot_checker.h"

#include <cstring>
#include <numeric>
#include <vector>

#include "cluster/answer_rows.h"

namespace troupe {

Result<bool> SpotChecker::IsTrue(const SpotCheck& check) {
  const Activations rows =
      rows_.Of({.form = check.form, .width = width_, .count = check.rows, .bytes = check.asked});
  std::vector<std::uint32_t> all(check.rows);
  std::iota(all.begin(), all.end(), 0u);
  std::vector<float> own(check.rows * width_);
  TROUPE_ASSIGN_OR_RETURN(ExpertMlp mlp, ExpertMlp::Create(ff_, check.rows));
  TROUPE_RETURN_IF_ERROR(
      with_expert_(check.id, [&](const Mlp& weights) { mlp.Run(weights, rows, all, own, pool_); }));
  RoundAnswerRows(check.answer_form, width_, own);
  return own.size() == check.answer.size() &&
         std::memcmp(own.data(), check.answer.data(), own.size() * sizeof(float)) == 0;
}

}  // namespace troupe
