#include "lab/task_score.h"

#include <algorithm>
#include <cmath>

#include "kernels/elementwise.h"
#include "lab/evaluation.h"
#include "lab/feed_in_parts.h"

namespace troupe {
namespace {

// An option's tokens; those from `scored` on are its continuation, before it stands at least one.
struct OptionTokens {
  std::vector<TokenId> ids;
  std::size_t scored = 0, bytes = 0;
};

std::size_t CommonPrefix(std::span<const TokenId> a, std::span<const TokenId> b) {
  return static_cast<std::size_t>(std::ranges::mismatch(a, b).in1 - a.begin());
}

class TaskScorer {
 public:
  TaskScorer(Session& session, const Tokenizer& tokenizer, const TaskOptions& options)
      : session_(session), tokenizer_(tokenizer), options_(options) {
    session_.Truncate(0);
    capacity_ = session_.room();
  }

  Result<ItemScore> Score(const TaskItem& item, TaskScore& sums) {
    TROUPE_ASSIGN_OR_RETURN(std::vector<OptionTokens> options, TokensOf(item));
    ItemScore score;
    for (OptionTokens& option : options) {
      TROUPE_ASSIGN_OR_RETURN(const bool was_cut, CutToFit(option));
      score.cut |= was_cut;
      TROUPE_ASSIGN_OR_RETURN(OptionScore scored, ScoreOption(option, sums.tokens_fed));
      sums.tokens_scored += scored.tokens;
      score.options.push_back(scored);
    }
    Judge(item.gold, score);
    return score;
  }

 private:
  Result<std::vector<OptionTokens>> TokensOf(const TaskItem& item) const {
    std::vector<OptionTokens> options;
    bool same_context = true;
    std::size_t least = std::string::npos;
    for (const TaskOption& option : item.options) {
      same_context = same_context && option.context == item.options.front().context;
      TROUPE_ASSIGN_OR_RETURN(const std::vector<TokenId> context, Encode(option.context));
      OptionTokens tokens{.bytes = option.continuation.size()};
      TROUPE_ASSIGN_OR_RETURN(tokens.ids, Encode(option.context + option.continuation));
      if (tokens.ids.size() < 2) return InvalidArgument("one token, too few to score it");
      // A token may reach across the seam: then it is scored.
      tokens.scored =
          std::clamp<std::size_t>(CommonPrefix(context, tokens.ids), 1, tokens.ids.size() - 1);
      least = std::min(least, tokens.scored);
      options.push_back(std::move(tokens));
    }
    // What one option is judged by, its rivals are, too.
    if (same_context) {
      for (OptionTokens& option : options) option.scored = least;
    }
    return options;
  }

  Result<std::vector<TokenId>> Encode(const std::string& text) const {
    TROUPE_ASSIGN_OR_RETURN(std::vector<TokenId> ids,
                            tokenizer_.Encode(text, {.add_special = false}));
    if (options_.begin) ids.insert(ids.begin(), *options_.begin);
    return ids;
  }

  // Questions lose their beginning: their end is what is asked. The last token is not fed.
  Result<bool> CutToFit(OptionTokens& option) const {
    if (option.ids.size() <= capacity_ + 1) return false;
    const std::size_t excess = option.ids.size() - (capacity_ + 1), kept = options_.begin ? 1 : 0;
    if (option.scored < excess + kept + 1) {
      return InvalidArgument("an answer of {} tokens, more than the context of {} holds",
                             option.ids.size() - option.scored, capacity_);
    }
    const auto from = option.ids.begin() + static_cast<std::ptrdiff_t>(kept);
    option.ids.erase(from, from + static_cast<std::ptrdiff_t>(excess));
    option.scored -= excess;
    return true;
  }

  Result<OptionScore> ScoreOption(const OptionTokens& option, std::uint64_t& fed) {
    const std::span<const TokenId> ids(option.ids);
    const std::size_t before = option.scored - 1;  // its logits are those of the first one scored
    const std::size_t kept = std::min(CommonPrefix(session_.tokens(), ids), before);
    session_.Truncate(kept);
    const std::span<const TokenId> rest = ids.subspan(kept, ids.size() - 1 - kept);
    OptionScore score{
        .tokens = ids.size() - option.scored, .bytes = option.bytes, .likeliest = true};
    TROUPE_RETURN_IF_ERROR(FeedInParts(
        session_, rest, options_.together.value_or(rest.size()), before - kept,
        options_.together ? Phase::kDecode : Phase::kPrompt,
        [&](std::size_t i, std::span<const float> logits) {
          const auto token = static_cast<std::size_t>(ids[kept + i + 1]);
          score.log_likelihood += LogProbability(logits, token);
          score.likeliest = score.likeliest && ArgMax(logits.data(), logits.size()) == token;
        }));
    fed += rest.size();
    if (!std::isfinite(score.log_likelihood)) {
      return DataLoss("the logits are not finite numbers");
    }
    return score;
  }

  Session& session_;
  const Tokenizer& tokenizer_;
  const TaskOptions& options_;
  std::size_t capacity_ = 0;
};

}  // namespace

void Judge(std::size_t gold, ItemScore& item) {
  if (item.options.size() == 1) {
    item.right = item.right_by_byte = item.options.front().likeliest;
    return;
  }
  const auto by_byte = [](const OptionScore& option) {
    return option.log_likelihood / static_cast<double>(std::max<std::size_t>(1, option.bytes));
  };
  const auto first = item.options.begin();  // of equals the first one
  item.by_sum = static_cast<std::size_t>(
      std::ranges::max_element(item.options, {}, &OptionScore::log_likelihood) - first);
  item.by_byte =
      static_cast<std::size_t>(std::ranges::max_element(item.options, {}, by_byte) - first);
  item.right = item.by_sum == gold;
  item.right_by_byte = item.by_byte == gold;
}

Result<TaskScore> ScoreTasks(Session& session, const Tokenizer& tokenizer, const TaskFile& file,
                             const TaskOptions& options,
                             const std::function<void(std::size_t done)>& progress) {
  TaskScore score;
  TaskScorer scorer(session, tokenizer, options);
  for (const TaskItem& item : file.items) {
    Result<ItemScore> scored = scorer.Score(item, score);
    if (!scored.ok()) {
      return Status(scored.status()).WithContext(fmt::format("{}, line {}", file.path, item.line));
    }
    score.right += scored->right;
    score.right_by_byte += scored->right_by_byte;
    score.cut += scored->cut;
    score.items.push_back(std::move(*scored));
    if (progress) progress(score.items.size());
  }
  return score;
}

Interval AccuracyDifference(const TaskScore& a, const TaskScore& b, bool by_byte) {
  TROUPE_CHECK(a.items.size() == b.items.size());
  std::uint64_t only_a = 0, only_b = 0;
  for (std::size_t i = 0; i < a.items.size(); ++i) {
    const bool in_a = by_byte ? a.items[i].right_by_byte : a.items[i].right;
    const bool in_b = by_byte ? b.items[i].right_by_byte : b.items[i].right;
    only_a += in_a && !in_b;
    only_b += in_b && !in_a;
  }
  return PairedShareDifference(only_a, only_b, a.items.size());
}

}  // namespace troupe
