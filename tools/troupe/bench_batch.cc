#include "troupe/bench_batch.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/clock.h"
#include "model/route_observer.h"
#include "runtime/session.h"

namespace troupe {
namespace {

// Of one expert, for every layer; 0 for layers without experts.
std::vector<std::uint64_t> ExpertBytes(const Engine& engine) {
  const ModelConfig& config = engine.config();
  std::vector<std::uint64_t> bytes(config.layers);
  for (std::uint32_t layer = 0; layer < config.layers; ++layer) {
    if (config.IsMoeLayer(layer)) bytes[layer] = engine.expert_layouts()[layer].SourceBytes();
  }
  return bytes;
}

// Counts the different experts of each pass while it exists.
class UnionCounter final : public RouteObserver {
 public:
  explicit UnionCounter(Engine& engine)
      : transformer_(engine.transformer()),
        expert_bytes_(ExpertBytes(engine)),
        experts_(engine.config().moe.routing.experts),
        in_pass_(expert_bytes_.size() * experts_) {
    transformer_.set_route_observer(this);
  }
  ~UnionCounter() override { transformer_.set_route_observer(nullptr); }
  UnionCounter(const UnionCounter&) = delete;
  UnionCounter& operator=(const UnionCounter&) = delete;

  void PassBegins(const PassFacts&) override { std::fill(in_pass_.begin(), in_pass_.end(), false); }
  void Routed(std::uint32_t layer, std::span<const ExpertChoice> chosen,
              std::span<const float>) override {
    if (!counting_) return;
    for (const ExpertChoice& choice : chosen) {
      const std::size_t place = layer * experts_ + choice.expert;
      if (in_pass_[place]) continue;
      in_pass_[place] = true;
      ++uses_;
      bytes_ += expert_bytes_[layer];
    }
  }
  void PassEnded() override {}

  void Reset() { uses_ = bytes_ = 0; }
  void Count(bool on) { counting_ = on; }
  std::uint64_t uses() const { return uses_; }    // sum over the passes since Reset
  std::uint64_t bytes() const { return bytes_; }  // the same in bytes

 private:
  Transformer& transformer_;
  const std::vector<std::uint64_t> expert_bytes_;
  const std::size_t experts_;
  std::vector<bool> in_pass_;
  bool counting_ = true;
  std::uint64_t uses_ = 0, bytes_ = 0;
};

double DenseBytes(const Engine& engine) {
  std::uint64_t routed = 0;
  for (const std::uint64_t bytes : ExpertBytes(engine)) {
    routed += bytes * engine.config().moe.routing.top_k;
  }
  return static_cast<double>(engine.bytes_touched_per_token().count() - routed);
}

// Of one sequence, halfway through the decode.
double AttendedBytes(Engine& engine, const BatchWork& work) {
  const KvPool& pool = engine.kv();
  const double positions =
      static_cast<double>(work.prompt) + (static_cast<double>(work.decode) + 1) / 2;
  return positions * static_cast<double>(pool.page_bytes()) /
         static_cast<double>(pool.page_positions());
}

// Runs the passes for one number of sequences. The prompt that is compared with them is of the same
// text at about the same positions.
class BatchTimer {
 public:
  BatchTimer(Engine& engine, TokenIds text, const BatchWork& work)
      : engine_(engine), text_(text), work_(work) {}

  Status Open() {
    for (std::size_t i = 0; i < work_.sequences; ++i) {
      Result<Session> session =
          Session::Create(engine_, static_cast<std::uint32_t>(work_.prompt + Span()));
      if (!session.ok()) {
        return Status(session.status())
            .WithContext(fmt::format("sequence {} of {}", i + 1, work_.sequences));
      }
      sessions_.push_back(std::move(session).value());
      windows_.push_back(
          TextWindow(text_, i * text_.size() / work_.sequences, work_.prompt + Span()));
    }
    return OkStatus();
  }

  // Gives the seconds of the passes; `begin` is called after the prompts.
  Result<double> Decode(const std::function<void()>& begin) {
    for (std::size_t i = 0; i < work_.sequences; ++i) TROUPE_RETURN_IF_ERROR(ReadPrompt(i, i));
    begin();
    const Stopwatch watch;
    std::vector<SequenceRows> rows(work_.sequences);
    for (std::size_t step = 0; step < work_.decode; ++step) {
      for (std::size_t i = 0; i < work_.sequences; ++i) {
        rows[i] = {.sequence = &sessions_[i],
                   .tokens = TokenIds(windows_[i]).subspan(work_.prompt + step, 1)};
      }
      TROUPE_RETURN_IF_ERROR(engine_.Run(rows));
    }
    return watch.Seconds();
  }

  // As many passes of as many rows, each a chunk of one window's text. Windows that are shorter
  // than all passes need follow each other, every one after a prompt of its own that is not timed.
  Result<double> Chunks(UnionCounter* counter = nullptr) {
    double seconds = 0;
    const std::size_t in_window = std::max<std::size_t>(1, work_.decode / work_.sequences);
    for (std::size_t pass = 0; pass < work_.decode; ++pass) {
      const std::size_t window = pass / in_window % work_.sequences, at = pass % in_window;
      if (at == 0) {
        if (counter != nullptr) counter->Count(false);
        TROUPE_RETURN_IF_ERROR(ReadPrompt(0, window));
        if (counter != nullptr) counter->Count(true);
      }
      const SequenceRows rows{
          .sequence = &sessions_[0],
          .tokens = TokenIds(windows_[window])
                        .subspan(work_.prompt + at * work_.sequences, work_.sequences),
          .phase = Phase::kPrompt};
      const Stopwatch watch;
      TROUPE_RETURN_IF_ERROR(engine_.Run({&rows, 1}));
      seconds += watch.Seconds();
    }
    return seconds;
  }

 private:
  std::size_t Span() const { return std::max(work_.decode, work_.sequences); }

  Status ReadPrompt(std::size_t session, std::size_t window) {
    sessions_[session].Truncate(0);
    return sessions_[session].FeedPrompt(TokenIds(windows_[window]).first(work_.prompt));
  }

  Engine& engine_;
  TokenIds text_;
  const BatchWork& work_;
  std::vector<Session> sessions_;
  std::vector<std::vector<TokenId>> windows_;
};

}  // namespace

std::vector<TokenId> TextWindow(TokenIds text, std::size_t first, std::size_t length) {
  std::vector<TokenId> window(length);
  for (std::size_t i = 0; i < length; ++i) window[i] = text[(first + i) % text.size()];
  return window;
}

Result<BatchSpeed> TimeBatch(Engine& engine, TokenIds text, const BatchWork& work,
                             const std::function<void()>& tick) {
  BatchSpeed speed{.sequences = work.sequences};
  BatchTimer timer(engine, text, work);
  TROUPE_RETURN_IF_ERROR(timer.Open());
  const auto passes = static_cast<double>(work.decode);
  {
    UnionCounter counter(engine);
    TROUPE_RETURN_IF_ERROR(timer.Decode([&counter] { counter.Reset(); }).status());
    speed.experts_a_pass = static_cast<double>(counter.uses()) / passes;
    speed.weight_bytes = DenseBytes(engine) + static_cast<double>(counter.bytes()) / passes;
    speed.attended_bytes = static_cast<double>(work.sequences) * AttendedBytes(engine, work);
    counter.Reset();
    TROUPE_RETURN_IF_ERROR(timer.Chunks(&counter).status());
    speed.prompt_experts_a_pass = static_cast<double>(counter.uses()) / passes;
  }
  const ExpertUsage at_first = engine.expert_usage();
  const auto tokens = static_cast<double>(work.sequences * work.decode);
  std::uint64_t read = 0;
  for (std::size_t rep = 0; rep < work.reps; ++rep) {
    ExpertUsage before;
    TROUPE_ASSIGN_OR_RETURN(const double together,
                            timer.Decode([&] { before = engine.expert_usage(); }));
    read += engine.expert_usage().Since(before).bytes_read;
    speed.tokens_per_s.push_back(tokens / together);
    TROUPE_ASSIGN_OR_RETURN(const double chunks, timer.Chunks());
    speed.prompt_tokens_per_s.push_back(tokens / chunks);
    tick();
  }
  speed.read_bytes = static_cast<double>(read) / (passes * static_cast<double>(work.reps));
  const ExpertUsage all = engine.expert_usage().Since(at_first);
  if (all.reading_seconds > 0) {
    speed.disk_bytes_per_s = static_cast<double>(all.bytes_read) / all.reading_seconds;
  }
  return speed;
}

double LimitTokensPerSecond(const BatchSpeed& speed, double memory_bytes_per_s,
                            double disk_bytes_per_s, bool with_attended) {
  double seconds =
      (speed.weight_bytes + (with_attended ? speed.attended_bytes : 0)) / memory_bytes_per_s;
  if (disk_bytes_per_s > 0) seconds = std::max(seconds, speed.read_bytes / disk_bytes_per_s);
  return static_cast<double>(speed.sequences) / seconds;
}

}  // namespace troupe
