// One pass over rows of several sequences, the logits that are wanted of them, and the check of
// their drafts.
#include <algorithm>
#include <array>
#include <numeric>

#include "base/check.h"
#include "kernels/rms_norm.h"
#include "runtime/engine.h"
#include "runtime/session.h"

namespace troupe {
namespace {

// Stops the program if two threads are in it at once.
class OneThread {
 public:
  explicit OneThread(std::atomic<bool>& running) : running_(running) {
    TROUPE_CHECK(!running_.exchange(true));
  }
  ~OneThread() { running_.store(false); }
  OneThread(const OneThread&) = delete;
  OneThread& operator=(const OneThread&) = delete;

 private:
  std::atomic<bool>& running_;
};

// The first of an entry's rows whose logits are wanted; their number if none are.
std::size_t FirstWanted(const SequenceRows& rows) {
  switch (rows.wanted) {
    case LogitsWanted::kNone:
      return rows.tokens.size();
    case LogitsWanted::kLast:
      return rows.tokens.size() - 1;
    case LogitsWanted::kAll:
      return std::min(rows.first_wanted, rows.tokens.size());
  }
  return rows.tokens.size();
}

}  // namespace

// Those of every entry's last row in one product, which reads the output matrix once for all.
void Engine::ComputeLogits(std::span<const SequenceRows> rows) {
  last_rows_.clear();
  last_of_.clear();
  std::uint32_t first = 0;  // row of the pass
  for (const SequenceRows& entry : rows) {
    const auto count = static_cast<std::uint32_t>(entry.tokens.size());
    if (entry.guessed == 0 && FirstWanted(entry) < count) {
      last_rows_.push_back(first + count - 1);
      last_of_.push_back(entry.sequence->id());
    }
    first += count;
  }
  if (last_rows_.empty()) return;
  transformer_->Logits(*workspace_, last_rows_, logits_.Place(last_of_).data());
  first = 0;
  for (const SequenceRows& entry : rows) {
    if (entry.wanted == LogitsWanted::kAll && entry.on_row) ShowRows(entry, first);
    first += static_cast<std::uint32_t>(entry.tokens.size());
  }
}

// After all other logits, whose memory it takes. What follows the sure tokens of the first draft is
// computed at once, and with it as much as is at a time.
void Engine::BeginCheck(std::span<const SequenceRows> rows) {
  guessed_.clear();
  const auto is_guessed = [](const SequenceRows& entry) { return entry.guessed > 0; };
  if (std::ranges::none_of(rows, is_guessed)) return;
  const std::size_t together = std::min<std::size_t>(EvaluatedRows(config()), workspace_->chunk());
  evaluated_.resize(std::max(evaluated_.size(), together * config().vocabulary));
  checked_.Begin(std::span(evaluated_).first(together * config().vocabulary), config().vocabulary);
  std::uint32_t first = 0;  // row of the pass
  for (const SequenceRows& entry : rows) {
    const auto count = static_cast<std::uint32_t>(entry.tokens.size());
    guessed_.push_back({.sequence = entry.sequence, .rows = count, .count = entry.guessed});
    checked_.AddEntry(first + count - entry.guessed - 1,
                      entry.guessed == 0 ? 0 : entry.guessed + 1);
    first += count;
  }
  const auto drafted =
      std::ranges::find_if(guessed_, [](const Guessed& of) { return of.count > 0; });
  LogitsAfterGuesses(static_cast<std::size_t>(drafted - guessed_.begin()), 0);
}

std::span<const float> Engine::LogitsAfterGuesses(std::size_t entry, std::size_t guesses) {
  TROUPE_CHECK(entry < guessed_.size());
  return checked_.Of(entry, guesses, [this](std::span<const std::uint32_t> rows, float* logits) {
    transformer_->Logits(*workspace_, rows, logits);
  });
}

void Engine::KeepGuesses(std::span<const std::uint32_t> right) {
  TROUPE_CHECK(right.size() == guessed_.size());
  for (std::size_t i = 0; i < right.size(); ++i) {
    TROUPE_CHECK(right[i] <= guessed_[i].count);
    Session& session = *guessed_[i].sequence;
    const std::uint32_t wrong = guessed_[i].count - right[i];
    if (wrong == 0) continue;
    if (config().HasState()) {
      transformer_->KeepFirstRows(session.cache_, guessed_[i].rows - wrong);
    }
    session.Truncate(session.tokens().size() - wrong);
  }
  experts_->OnGuessesChecked(right);
  guessed_.clear();
}

void Engine::ShowRows(const SequenceRows& entry, std::uint32_t first) {
  const std::size_t vocabulary = config().vocabulary, last = entry.tokens.size() - 1;
  const std::size_t most = std::min<std::size_t>(EvaluatedRows(config()), workspace_->chunk());
  std::array<std::uint32_t, kMostEvaluatedRows> together;
  std::size_t count = 0;
  for (std::size_t at = FirstWanted(entry); at < last; at += count) {
    count = std::min(most, last - at);
    std::iota(together.begin(), together.begin() + static_cast<std::ptrdiff_t>(count),
              first + static_cast<std::uint32_t>(at));
    evaluated_.resize(std::max(evaluated_.size(), count * vocabulary));
    transformer_->Logits(*workspace_, std::span(together).first(count), evaluated_.data());
    for (std::size_t i = 0; i < count; ++i) {
      entry.on_row(at + i, std::span(evaluated_).subspan(i * vocabulary, vocabulary));
    }
  }
  if (FirstWanted(entry) <= last) entry.on_row(last, entry.sequence->logits());
}

// As the logits are computed from it.
void Engine::ShowStream(std::span<const SequenceRows> rows) {
  const std::size_t width = config().width;
  const std::span<const float> stream = transformer_->Stream(*workspace_);
  std::size_t row = 0;  // of the pass
  for (const SequenceRows& entry : rows) {
    if (entry.embedding != nullptr) {
      std::vector<float> normed(width);
      for (std::size_t i = 0; i < entry.tokens.size(); ++i) {
        RmsNorm(stream.data() + (row + i) * width, weights().output_norm, config().norm_epsilon,
                normed.data(), width);
        entry.embedding->Add(normed);
      }
    }
    row += entry.tokens.size();
  }
}

// For the head, which goes on from them.
void Engine::KeepTails(std::span<const SequenceRows> rows) {
  if (head_ == nullptr) return;
  const std::size_t width = config().width;
  std::span<const float> stream = transformer_->Stream(*workspace_);
  for (const SequenceRows& entry : rows) {
    const std::size_t count = entry.tokens.size();
    const Session& session = *entry.sequence;
    if (!entry.drafts) {
      tails_[session.id()].Append(session.tokens().size() - count, stream.first(count * width));
    }
    stream = stream.subspan(count * width);
  }
}

Status Engine::Run(std::span<const SequenceRows> rows) {
  const OneThread one(running_);
  TROUPE_CHECK(guessed_.empty());  // nothing is left to be checked
  batch_.clear();
  for (const SequenceRows& entry : rows) {
    Session& session = *entry.sequence;
    TROUPE_CHECK(session.engine_ == this && entry.tokens.size() > entry.guessed);
    TROUPE_CHECK(session.cache_.length() == session.tokens_.size());  // it has caught up
    TROUPE_CHECK(entry.drafts || !session.drafted_from_);             // what it holds is exact
    TROUPE_RETURN_IF_ERROR(session.CheckRoom(entry.tokens.size()));
    batch_.push_back(
        {.cache = &session.cache_,
         .tokens = entry.tokens,
         .sequence = session.id(),
         .request = entry.request.value_or(session.request()),
         .phase = entry.phase,
         .exact = entry.exact,
         .guessed = entry.drafts ? static_cast<std::uint32_t>(entry.tokens.size()) : entry.guessed,
         .drafts = entry.drafts,
         .save_after = entry.save_after,
         .unwanted = entry.unwanted});
  }
  TROUPE_RETURN_IF_ERROR(transformer_->Forward(batch_, *workspace_));
  for (const SequenceRows& entry : rows) {
    std::vector<std::int32_t>& tokens = entry.sequence->tokens_;
    tokens.insert(tokens.end(), entry.tokens.begin(), entry.tokens.end());
  }
  ShowStream(rows);
  KeepTails(rows);
  ComputeLogits(rows);
  BeginCheck(rows);
  return OkStatus();
}

}  // namespace troupe
