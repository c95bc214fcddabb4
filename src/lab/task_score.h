// Multiple choice by likelihood: of each question's options the one whose tokens the model finds
// likeliest, in sum and for each byte. What options begin with alike is fed once.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <vector>

#include "base/status.h"
#include "lab/intervals.h"
#include "lab/task_file.h"
#include "runtime/session.h"

namespace troupe {

struct OptionScore {
  double log_likelihood = 0;  // of the continuation's tokens, in nats
  std::size_t tokens = 0, bytes = 0;
  bool likeliest = false;  // each token was the likeliest where it stood
};

// Which option has the highest score.
struct ItemScore {
  std::vector<OptionScore> options;
  std::size_t by_sum = 0, by_byte = 0;
  bool right = false, right_by_byte = false;
  bool cut = false;  // the context held only the end of the question
};

struct TaskScore {
  std::vector<ItemScore> items;
  std::size_t right = 0, right_by_byte = 0, cut = 0;
  std::uint64_t tokens_fed = 0, tokens_scored = 0;

  Interval accuracy() const { return ShareInterval(right, items.size()); }
  Interval accuracy_by_byte() const { return ShareInterval(right_by_byte, items.size()); }
};

struct TaskOptions {
  std::optional<std::size_t> together;  // as EvaluationOptions
  std::optional<TokenId> begin;         // before each context
};

Result<TaskScore> ScoreTasks(Session& session, const Tokenizer& tokenizer, const TaskFile& file,
                             const TaskOptions& options,
                             const std::function<void(std::size_t done)>& progress = {});

// The option of the highest score, and whether that is the right one. For questions with one option
// alone: whether each of its tokens was the likeliest.
void Judge(std::size_t gold, ItemScore& item);

// Of the same questions: how much more often B is right than A.
Interval AccuracyDifference(const TaskScore& a, const TaskScore& b, bool by_byte);

}  // namespace troupe
