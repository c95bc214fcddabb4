#include "cluster/spot_checker.h"

#include <cstring>
#include <numeric>

#include "cluster/answer_rows.h"

namespace troupe {

bool AreSameRows(std::span<const float> one, std::span<const float> other) {
  return one.size() == other.size() && std::memcmp(one.data(), other.data(), one.size_bytes()) == 0;
}

Result<SpotResult> SpotChecker::Check(const SpotCheck& check) {
  using Found = SpotResult::Found;
  const Activations rows =
      rows_.Of({.form = check.form, .width = width_, .count = check.rows, .bytes = check.asked});
  std::vector<std::uint32_t> all(check.rows);
  std::iota(all.begin(), all.end(), 0u);
  SpotResult result{.own = std::vector<float>(check.rows * width_)};
  TROUPE_ASSIGN_OR_RETURN(ExpertMlp mlp, ExpertMlp::Create(ff_, check.rows));
  TROUPE_RETURN_IF_ERROR(with_expert_(check.id, [&](const Mlp& weights) {
    mlp.Run(weights, rows, all, result.own, pool_);
    RoundAnswerRows(check.answer_form, width_, result.own);
    if (AreSameRows(result.own, check.answer)) return;
    const std::optional<bool> is_whole = is_whole_(check.id, weights);
    result.found = !is_whole ? Found::kUnproven : *is_whole ? Found::kPeerWrong : Found::kOwnWrong;
  }));
  return result;
}

}  // namespace troupe
