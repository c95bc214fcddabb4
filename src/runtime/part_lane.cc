#include "runtime/part_lane.h"

#include <algorithm>
#include <list>
#include <utility>

#include "base/check.h"
#include "base/mutex.h"
#include "expert/flow/row_speed.h"
#include "runtime/move_pace.h"

namespace troupe {

class PartLane::Prompt {
 public:
  Prompt(std::shared_ptr<State> state, LayerRange layers, std::size_t tokens)
      : state_(std::move(state)), layers_(layers), tokens_(tokens) {}
  ~Prompt();

  LayerRange layers() const { return layers_; }
  std::size_t tokens() const { return tokens_; }

  std::unique_ptr<PartRunner::Sequence> sequence;  // the engine's thread's; null: no room yet

 private:
  const std::shared_ptr<State> state_;
  const LayerRange layers_;
  const std::size_t tokens_;
};

// One of three: a piece, keys and values that are stored, or those that are taken out.
struct PartLane::Work {
  std::shared_ptr<Prompt> prompt;
  Piece piece = {};
  KeysPart stored = {};
  Take take = {};
  std::function<void(const Outcome& outcome)> on_done;
  Nanos since = 0;
  std::size_t rows = 0;  // of the piece
  std::size_t done = 0;  // of these
  bool runs = false;     // it is the engine's thread's
  Outcome outcome = {};
};

struct PartLane::State : std::enable_shared_from_this<PartLane::State> {
  using Works = std::list<std::unique_ptr<Work>>;
  struct Chosen {
    Work* work = nullptr;
    std::size_t rows = 0;
  };

  State(PartRunner part_runner, PassGaps part_gaps, const Clock& part_clock)
      : runner(std::move(part_runner)),
        most_positions(runner.most_positions()),
        layers(runner.layers()),
        width(runner.width()),
        gaps(std::move(part_gaps)),
        clock(part_clock) {}

  void AskForPass() {
    {
      const MutexLock lock(mu);
      if (closed || std::exchange(asked, true)) return;
    }
    gaps.between([self = shared_from_this()] { self->Pass(); });
  }

  // On the engine's thread.
  void Pass();
  void OpenSequences() TROUPE_REQUIRES(mu);
  // What is moved next, of those with room.
  struct Moves {
    std::vector<Work*> stored;
    std::vector<Work*> taken_out;  // the first of which something is left
    std::size_t bytes = 0;         // that there is time for behind what is stored
  };
  Moves ChooseMoves();
  // Gives how long they took.
  double Move(const Moves& moves);
  void TakeOut(std::span<Work* const> works, std::size_t bytes);
  // What goes through layers next, of those with room.
  std::vector<Chosen> Choose(double moved_seconds);
  std::size_t MostRows(LayerRange through, double moved_seconds) const;
  void RunAll(std::vector<Chosen> chosen);
  Status RunPass(std::span<const Chosen> chosen);
  void TakeResults(std::span<const Chosen> chosen, Nanos start);
  std::vector<KeysPart> KeysOf(const Work& work) const;
  void Settle(const Chosen& of, const Status& status, std::uint32_t last_row);
  void PutBack(std::span<const Chosen> chosen);
  Works::iterator Find(const Work* work) TROUPE_REQUIRES(mu) {
    return std::ranges::find(works, work, [](const auto& one) { return one.get(); });
  }

  static void Fail(const Works& works) {
    for (const auto& work : works) {
      work->outcome.status = Status(Code::kCancelled, "the engine was closed");
      work->on_done(work->outcome);
    }
  }

  PartRunner runner;       // the engine's thread's
  RowCurve layer_seconds;  // that passes took by their rows, a layer; the same
  MovePace pace;           // the same
  const std::size_t most_positions;
  const LayerRange layers;
  const std::size_t width;
  const PassGaps gaps;
  const Clock& clock;
  mutable Mutex mu;
  Works works TROUPE_GUARDED_BY(mu);  // in the order in which they came
  std::vector<std::unique_ptr<PartRunner::Sequence>> released TROUPE_GUARDED_BY(mu);
  bool asked TROUPE_GUARDED_BY(mu) = false;
  bool closed TROUPE_GUARDED_BY(mu) = false;
  PartCounters counters TROUPE_GUARDED_BY(mu);
};

PartLane::Prompt::~Prompt() {
  {
    const MutexLock lock(state_->mu);
    --state_->counters.prompts_now;
    if (sequence != nullptr) state_->released.push_back(std::move(sequence));
  }
  state_->AskForPass();
}

std::size_t PartLane::State::MostRows(LayerRange through, double moved_seconds) const {
  const auto most = static_cast<std::uint32_t>(runner.most_rows());
  if (!gaps.rows) return most;
  const auto seconds = [&](std::uint32_t rows) {
    return layer_seconds.At(rows) * static_cast<double>(through.size());
  };
  const std::uint32_t rows = std::clamp<std::uint32_t>(gaps.rows(seconds, most), 1, most);
  const double allowed = seconds(rows);
  if (allowed <= 0) return rows;  // nobody has measured
  const double left = std::max(0.0, 1 - moved_seconds / allowed);
  return std::max<std::uint32_t>(static_cast<std::uint32_t>(rows * left), 1);
}

// A prompt that waits for room is overtaken by none that waits as well.
void PartLane::State::OpenSequences() {
  for (auto& sequence : std::exchange(released, {})) runner.Close(std::move(sequence));
  for (const auto& work : works) {
    Prompt& prompt = *work->prompt;
    if (prompt.sequence == nullptr) prompt.sequence = runner.Open(prompt.tokens());
    if (prompt.sequence == nullptr) return;
  }
}

// In the order in which they came, one at least. One prompt is taken out at a time, in the time
// that is left.
PartLane::State::Moves PartLane::State::ChooseMoves() {
  std::size_t most = 0, bytes = 0;
  Moves moves;
  const MutexLock lock(mu);
  asked = false;
  OpenSequences();
  for (const auto& work : works) {
    if (work->rows > 0 || work->prompt->sequence == nullptr) continue;
    if (most == 0) most = pace.Most(gaps);
    if (work->take) {
      work->runs = true;
      moves.taken_out.push_back(work.get());
    } else if (bytes == 0 || bytes + work->stored.bytes.size() <= most) {
      work->runs = true;
      bytes += work->stored.bytes.size();
      moves.stored.push_back(work.get());
    }
  }
  moves.bytes = most - std::min(most, bytes);
  return moves;
}

// Of the first layers that somebody with room wants, as many rows as fit.
std::vector<PartLane::State::Chosen> PartLane::State::Choose(double moved_seconds) {
  const MutexLock lock(mu);
  std::vector<Chosen> chosen;
  std::size_t rows = 0, most = 0;
  for (const auto& work : works) {
    const Prompt& prompt = *work->prompt;
    if (work->rows == 0 || prompt.sequence == nullptr) continue;
    if (!chosen.empty() && chosen.front().work->prompt->layers() != prompt.layers()) continue;
    const auto is_same = [&](const Chosen& of) { return of.work->prompt == work->prompt; };
    if (std::ranges::any_of(chosen, is_same)) continue;
    if (chosen.empty()) most = MostRows(prompt.layers(), moved_seconds);
    const std::size_t take = std::min(work->rows - work->done, most - rows);
    if (take == 0) break;
    work->runs = true;
    chosen.push_back({.work = work.get(), .rows = take});
    rows += take;
  }
  return chosen;
}

Status PartLane::State::RunPass(std::span<const Chosen> chosen) {
  std::vector<PartRunner::Rows> rows;
  for (const auto& [work, count] : chosen) {
    const Piece& piece = work->piece;
    PartRunner::Rows of{.sequence = work->prompt->sequence.get()};
    if (piece.stream.empty()) {
      of.tokens = std::span(piece.tokens).subspan(work->done, count);
    } else {
      of.stream = std::span(piece.stream).subspan(work->done * width, count * width);
    }
    rows.push_back(of);
  }
  return runner.Run(chosen.front().work->prompt->layers(), rows);
}

void PartLane::State::TakeResults(std::span<const Chosen> chosen, Nanos start) {
  const Nanos now = clock.Now();
  const double seconds = static_cast<double>(now - start) * 1e-9;
  const std::span<const float> stream = runner.Stream();
  const std::size_t all = stream.size() / width;
  std::size_t first = 0;  // row of the pass
  for (const auto& [work, count] : chosen) {
    Outcome& outcome = work->outcome;
    outcome.seconds += seconds * static_cast<double>(count) / static_cast<double>(all);
    outcome.waited_seconds =
        std::max(0.0, static_cast<double>(now - work->since) * 1e-9 - outcome.seconds);
    outcome.ended = now;
    if (work->piece.wanted == Wanted::kRows) {
      const auto rows = stream.subspan(first * width, count * width);
      outcome.rows.insert(outcome.rows.end(), rows.begin(), rows.end());
    }
    first += count;
  }
  const LayerRange through = chosen.front().work->prompt->layers();
  layer_seconds.Note(static_cast<double>(all), seconds / static_cast<double>(through.size()));
  const MutexLock lock(mu);
  for (const auto& [work, count] : chosen) work->done += count;  // whoever counts looks at it
  ++counters.passes;
  counters.rows += all;
  counters.pass_seconds += seconds;
}

// Those of the piece's rows are the last ones that its sequence has.
std::vector<KeysPart> PartLane::State::KeysOf(const Work& work) const {
  const PartRunner::Sequence& sequence = *work.prompt->sequence;
  const KeysRange range{.layers = work.prompt->layers(),
                        .first = sequence.cache.length() - work.rows,
                        .positions = work.rows};
  return runner.Keys(sequence, range, work.piece.most_keys_bytes);
}

double PartLane::State::Move(const Moves& moves) {
  if (moves.stored.empty() && moves.taken_out.empty()) return 0;
  const Nanos start = clock.Now();
  std::size_t bytes = 0;
  for (Work* const work : moves.stored) {
    runner.Store(*work->prompt->sequence, work->stored.range, work->stored.bytes);
    bytes += work->stored.bytes.size();
  }
  const Nanos stored = clock.Now();
  if (bytes > 0) pace.Note(bytes, static_cast<double>(stored - start) * 1e-9);
  {
    const MutexLock lock(mu);
    counters.stored_bytes += bytes;
    ++counters.moves;
  }
  for (Work* const work : moves.stored) {
    work->outcome.ended = stored;
    Settle({.work = work, .rows = 0}, OkStatus(), 0);
  }
  TakeOut(moves.taken_out, moves.bytes);
  return static_cast<double>(clock.Now() - start) * 1e-9;
}

// Those before which nobody wants any more are over with the same pass: their room is waited for.
void PartLane::State::TakeOut(std::span<Work* const> wanted, std::size_t bytes) {
  const std::size_t of_position = runner.pool().page_bytes() / runner.page_positions();
  bool is_taken = false;
  for (Work* const work : wanted) {
    const Chosen chosen{.work = work, .rows = 0};
    if (is_taken) {
      PutBack({&chosen, 1});
      continue;
    }
    const Nanos start = clock.Now();
    const Taken taken = work->take(bytes / of_position);
    const Nanos now = clock.Now();
    is_taken = taken.positions > 0;
    if (is_taken) {
      pace.Note(taken.positions * of_position, static_cast<double>(now - start) * 1e-9);
    }
    work->outcome.ended = now;
    taken.more ? PutBack({&chosen, 1}) : Settle(chosen, OkStatus(), 0);
  }
}

// Of what was in a pass: it is done, or waits for the next one.
void PartLane::State::Settle(const Chosen& of, const Status& status, std::uint32_t last_row) {
  Work* const work = of.work;
  Works over;
  {
    const MutexLock lock(mu);
    work->runs = false;
    if (status.ok() && work->done < work->rows && !closed) return;
    over.splice(over.begin(), works, Find(work));
  }
  if (status.ok() && work->done < work->rows) return Fail(over);
  work->outcome.status = status;
  if (status.ok() && work->piece.most_keys_bytes > 0) work->outcome.keys = KeysOf(*work);
  if (status.ok() && work->piece.wanted == Wanted::kLogits) {
    work->outcome.logits = runner.Logits(last_row);
  }
  work->on_done(work->outcome);
}

// They wait for the next pass; of a lane that was closed meanwhile there is none.
void PartLane::State::PutBack(std::span<const Chosen> chosen) {
  Works over;
  {
    const MutexLock lock(mu);
    for (const Chosen& of : chosen) {
      of.work->runs = false;
      if (closed) over.splice(over.end(), works, Find(of.work));
    }
  }
  Fail(over);
}

void PartLane::State::Pass() {
  const double moved_seconds = Move(ChooseMoves());
  std::vector<Chosen> chosen = Choose(moved_seconds);
  if (!chosen.empty()) RunAll(std::move(chosen));
  // Those that wait for room are asked for when somebody gives some back.
  const bool is_more = [this] {
    const MutexLock lock(mu);
    return std::ranges::any_of(works,
                               [](const auto& work) { return work->prompt->sequence != nullptr; });
  }();
  if (is_more) AskForPass();
}

void PartLane::State::RunAll(std::vector<Chosen> chosen) {
  Nanos start = clock.Now();
  Status status = RunPass(chosen);
  // One by one where it failed: only those fail that need what cannot be had.
  if (!status.ok() && chosen.size() > 1) {
    PutBack(std::span(chosen).subspan(1));
    chosen.resize(1);
    start = clock.Now();
    status = RunPass(chosen);
  }
  if (status.ok()) TakeResults(chosen, start);
  std::uint32_t rows = 0;
  for (const Chosen& of : chosen) {
    rows += static_cast<std::uint32_t>(of.rows);
    Settle(of, status, rows - 1);
  }
}

PartLane::PartLane(PartRunner runner, PassGaps gaps, const Clock& clock)
    : page_(runner.page_positions()),
      pages_(runner.most_positions() / page_),
      state_(std::make_shared<State>(std::move(runner), std::move(gaps), clock)) {}

PartLane::~PartLane() { Close(); }

Result<std::shared_ptr<PartLane::Prompt>> PartLane::Open(LayerRange layers, std::size_t tokens) {
  const LayerRange may = state_->layers;
  if (layers.size() == 0 || layers.first < may.first || layers.end > may.end) {
    return InvalidArgument("layers {} to {} of a cut prompt, expected some of {} to {}",
                           layers.first, layers.end, may.first, may.end);
  }
  if (tokens == 0 || tokens > state_->most_positions) {
    return Error(Code::kResourceExhausted,
                 "a cut prompt of {} tokens, there is room for {} (--cut-tokens)", tokens,
                 state_->most_positions);
  }
  {
    const MutexLock lock(state_->mu);
    if (state_->closed) return Error(Code::kCancelled, "the engine was closed");
    ++state_->counters.prompts;
    ++state_->counters.prompts_now;
  }
  return std::make_shared<Prompt>(state_, layers, tokens);
}

void PartLane::Run(std::shared_ptr<Prompt> prompt, Piece piece,
                   std::function<void(const Outcome& outcome)> on_done) {
  const std::size_t rows =
      piece.stream.empty() ? piece.tokens.size() : piece.stream.size() / state_->width;
  TROUPE_CHECK(rows > 0);
  Add(std::make_unique<Work>(Work{.prompt = std::move(prompt),
                                  .piece = std::move(piece),
                                  .on_done = std::move(on_done),
                                  .rows = rows}));
}

void PartLane::Store(std::shared_ptr<Prompt> prompt, KeysPart part,
                     std::function<void(const Outcome& outcome)> on_done) {
  Add(std::make_unique<Work>(
      Work{.prompt = std::move(prompt), .stored = std::move(part), .on_done = std::move(on_done)}));
}

void PartLane::TakeOut(std::shared_ptr<Prompt> prompt, Take take,
                       std::function<void(const Outcome& outcome)> on_done) {
  Add(std::make_unique<Work>(
      Work{.prompt = std::move(prompt), .take = std::move(take), .on_done = std::move(on_done)}));
}

void PartLane::CopyTo(const Prompt& prompt, std::size_t positions, KvSequence& to) const {
  state_->runner.CopyTo(*prompt.sequence, positions, to);
}

void PartLane::Add(std::unique_ptr<Work> work) {
  work->since = state_->clock.Now();
  State::Works works;
  works.push_back(std::move(work));
  {
    const MutexLock lock(state_->mu);
    if (!state_->closed) state_->works.splice(state_->works.end(), works);
  }
  if (works.empty()) return state_->AskForPass();
  State::Fail(works);
}

void PartLane::Close() {
  State::Works waiting;
  {
    const MutexLock lock(state_->mu);
    if (std::exchange(state_->closed, true)) return;
    for (auto work = state_->works.begin(); work != state_->works.end();) {
      const auto next = std::next(work);
      if (!(*work)->runs) waiting.splice(waiting.end(), state_->works, work);
      work = next;
    }
  }
  State::Fail(waiting);
}

std::size_t PartLane::most_positions() const { return state_->most_positions; }

const KvPool& PartLane::pool() const { return state_->runner.pool(); }

PartCounters PartLane::counters() const {
  const MutexLock lock(state_->mu);
  PartCounters counters = state_->counters;
  for (const auto& work : state_->works) counters.waiting_rows += work->rows - work->done;
  return counters;
}

}  // namespace troupe
