// One pass over rows of several sequences, and the logits that are wanted of them.
#include <algorithm>
#include <array>

#include "base/check.h"
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

// Rows of logits computed together, each with where it goes.
class LogitBatch {
 public:
  LogitBatch(Transformer& transformer, Workspace& workspace, std::vector<float>& memory)
      : transformer_(transformer),
        workspace_(workspace),
        memory_(memory),
        vocabulary_(transformer.config().vocabulary),
        most_(std::min(LogitRowsTogether(transformer.config()), workspace.chunk())) {}

  // Row `row` of the pass is row `index` of `from`, the logits of whose last row go to `last`.
  void Add(std::size_t row, const SequenceRows& from, std::size_t index, std::span<float> last) {
    wanted_[count_] = static_cast<std::uint32_t>(row);
    places_[count_] = {.from = &from, .index = index, .last = last};
    if (++count_ == most_) Flush();
  }

  void Flush() {
    if (count_ == 0) return;
    const auto rows = std::span(wanted_).first(count_);
    if (count_ == 1 && places_[0].from->wanted == LogitsWanted::kLast) {  // no copy
      transformer_.Logits(workspace_, rows, places_[0].last.data());
    } else {
      memory_.resize(std::max(memory_.size(), count_ * vocabulary_));
      transformer_.Logits(workspace_, rows, memory_.data());
      for (std::size_t i = 0; i < count_; ++i) {
        Deliver(places_[i], std::span(memory_).subspan(i * vocabulary_, vocabulary_));
      }
    }
    count_ = 0;
  }

 private:
  struct Place {
    const SequenceRows* from;
    std::size_t index;
    std::span<float> last;
  };

  static void Deliver(const Place& place, std::span<const float> logits) {
    const SequenceRows& from = *place.from;
    if (from.wanted == LogitsWanted::kAll && from.on_row) from.on_row(place.index, logits);
    if (place.index + 1 == from.tokens.size()) std::ranges::copy(logits, place.last.begin());
  }

  Transformer& transformer_;
  Workspace& workspace_;
  std::vector<float>& memory_;
  std::size_t vocabulary_, most_;
  std::array<std::uint32_t, kMostLogitRows> wanted_;
  std::array<Place, kMostLogitRows> places_;
  std::size_t count_ = 0;
};

}  // namespace

void Engine::ComputeLogits(std::span<const SequenceRows> rows) {
  LogitBatch logits(*transformer_, *workspace_, logit_rows_);
  std::size_t first = 0;  // row of the pass
  for (const SequenceRows& entry : rows) {
    for (std::size_t i = FirstWanted(entry); i < entry.tokens.size(); ++i) {
      logits.Add(first + i, entry, i, entry.sequence->logits_);
    }
    first += entry.tokens.size();
  }
  logits.Flush();
}

Status Engine::Run(std::span<const SequenceRows> rows) {
  const OneThread one(running_);
  batch_.clear();
  for (const SequenceRows& entry : rows) {
    Session& session = *entry.sequence;
    TROUPE_CHECK(session.engine_ == this && !entry.tokens.empty());
    TROUPE_RETURN_IF_ERROR(session.CheckRoom(entry.tokens.size()));
    batch_.push_back({.cache = &session.cache_,
                      .tokens = entry.tokens,
                      .sequence = session.id(),
                      .request = entry.request.value_or(session.request()),
                      .phase = entry.phase,
                      .exact = entry.exact});
  }
  TROUPE_RETURN_IF_ERROR(transformer_->Forward(batch_, *workspace_));
  for (const SequenceRows& entry : rows) {
    std::vector<std::int32_t>& tokens = entry.sequence->tokens_;
    tokens.insert(tokens.end(), entry.tokens.begin(), entry.tokens.end());
  }
  ComputeLogits(rows);
  return OkStatus();
}

}  // namespace troupe
