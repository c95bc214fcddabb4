// `troupe bench`: prefill and decode speed over lengths, alone and together, on real text, against
// the speed at which this machine's threads read memory. How many sequences are timed is
// bench_batch.h's and bench_join.h's part. For comparisons with other engines see bench/.

#include <algorithm>
#include <functional>
#include <string>
#include <vector>

#include "base/clock.h"
#include "base/thread_pool.h"
#include "machine/bandwidth.h"
#include "machine/process_memory.h"
#include "runtime/session.h"
#include "troupe/bench_report.h"
#include "troupe/bench_text.h"
#include "troupe/commands.h"
#include "troupe/engine_flags.h"
#include "troupe/json_record.h"
#include "troupe/options.h"
#include "troupe/progress.h"
#include "troupe/text_input.h"
#include "troupe/trace_flags.h"

namespace troupe {
namespace {

class BenchCommand final : public Command {
 public:
  void AddOptions(Options& options) override {
    engine_.AddTo(options);
    options.Heading("Measurement");
    options.Add("-p,--prefill", prefill_, "Prompt lengths to measure prefill with (128,512)")
        .SeparatedBy(',')
        .Between(1, 1 << 24)
        .Type("N,N,…");
    options.Add("-n,--decode", decode_, "Number of tokens to generate and time (128); 0: none")
        .Between(std::size_t{0}, kMostTokens)
        .Type("N");
    options.Add("--prompt-length", prompt_, "Prompt lengths to measure decode after (32)")
        .SeparatedBy(',')
        .Between(1, 1 << 24)
        .Type("N,N,…");
    options.Add("-f,--prompt-file", prompt_file_, "Prompt text, repeated if it is short (built in)")
        .Type("FILE");
    options.Add("-r,--reps", reps_, "Repetitions; the median is reported (5)")
        .Between(1, 1000)
        .Type("N");
    options
        .Add(
            "--together", together_,
            "Numbers of sequences that decode in shared passes, each after a prompt of the first "
            "--prefill length; beside each the speed of a prompt read in chunks of as many tokens, "
            "and the limit that memory and disk set (none)")
        .SeparatedBy(',')
        .Between(1, 1024)
        .Excludes("--trace")
        .Type("N,N,…");
    options
        .Add(
            "--join", joined_prompt_,
            "Measure how long 8 sequences that decode wait for their next tokens while a prompt of "
            "this length joins them (none)")
        .Between(1, 1 << 24)
        .Excludes("--trace")
        .Type("N");
    options.Heading(kOutputHeading);
    trace_.AddTo(options);
    AddJsonOption(options, json_);
  }

  Status CheckUsage() const override {
    if (!trace_.to_standard_output() || json_ != "-") return OkStatus();
    return InvalidArgument("--trace - and --json -: standard output is for one of them");
  }

  Status Run() override {
    if (decode_ == 0 && !together_.empty()) {
      return InvalidArgument(
          "--together times tokens that are generated: --decode 0 asks for none");
    }
    BenchFigures figures;
    TROUPE_RETURN_IF_ERROR(MeasureModel(figures));
    TROUPE_RETURN_IF_ERROR(MeasureMemory(figures));
    if (json_ != "-" && !trace_.to_standard_output()) PrintBench(figures);
    return json_.empty() ? OkStatus() : WriteJson(BenchRecord(figures), json_);
  }

 private:
  // That the engine holds at once.
  std::size_t Sequences() const {
    std::size_t most = joined_prompt_ > 0 ? kJoinedSequences + 1 : 1;
    for (const std::size_t n : together_) most = std::max(most, n);
    return most;
  }

  Status MeasureModel(BenchFigures& figures) {
    engine_.HoldSequences(static_cast<std::uint32_t>(Sequences()),
                          static_cast<std::uint32_t>(together_.empty() ? 0 : Together()));
    if (joined_prompt_ == 0 && together_.empty()) {  // these share passes, or end when they may
      engine_.ReadsOneText(
          [longest = Longest()](const Tokenizer&, std::uint32_t most) -> Result<TextLength> {
            const auto length = static_cast<std::uint32_t>(std::min<std::size_t>(longest, most));
            return TextLength{.least = length, .most = length, .read = length};
          });
    }
    TROUPE_ASSIGN_OR_RETURN(const std::unique_ptr<Engine> engine,
                            engine_.Open(Longest(), trace_.scores()));
    if (engine->config().encoder) {
      return Error(Code::kUnimplemented,
                   "{}: an encoder-decoder, which bench does not time: its prompts are not read in "
                   "chunks, and a token passes a part of the layers; run and bench-server say how "
                   "fast it answers",
                   engine->path());
    }
    if (Longest() > engine->plan().context()) {
      return Error(Code::kResourceExhausted,
                   "{} tokens are to be timed, the context has {}; --ctx asks for more", Longest(),
                   engine->plan().context());
    }
    TROUPE_ASSIGN_OR_RETURN(const std::vector<TokenId> text, Text(engine->tokenizer()));
    figures.model = engine->path();
    figures.threads = engine->plan().threads;
    figures.load_seconds = engine->load_seconds();
    figures.touched_per_token = engine->bytes_touched_per_token();
    figures.budget = engine->plan().memory.budget;
    {
      ProgressBar bar("measuring");
      const std::size_t rounds =
          reps_ * (prefill_.size() + (decode_ > 0 ? prompt_.size() : 0) + together_.size());
      std::size_t done = 0;
      const auto tick = [&] { bar.UpdateCount(static_cast<double>(++done), rounds); };
      TROUPE_RETURN_IF_ERROR(MeasureAlone(*engine, text, tick, figures));
      TROUPE_RETURN_IF_ERROR(MeasureMany(*engine, text, tick, figures));
    }
    figures.peak = PeakResidentMemory();
    return OkStatus();
  }

  Status MeasureAlone(Engine& engine, TokenIds text, const std::function<void()>& tick,
                      BenchFigures& figures) const {
    TROUPE_ASSIGN_OR_RETURN(const std::unique_ptr<TraceRecorder> recorder, trace_.Begin(engine));
    TROUPE_ASSIGN_OR_RETURN(Session session,
                            Session::Create(engine, static_cast<std::uint32_t>(Longest())));
    for (const std::size_t length : prefill_) {
      TROUPE_ASSIGN_OR_RETURN(LoneSpeed m, TimePrefill(session, text, length, tick));
      figures.prefill.push_back(std::move(m));
    }
    for (const std::size_t length : decode_ > 0 ? prompt_ : std::vector<std::size_t>()) {
      TROUPE_ASSIGN_OR_RETURN(LoneSpeed m, TimeDecode(session, text, length, tick));
      figures.decode.push_back(std::move(m));
    }
    return trace_.Finish(recorder.get());
  }

  Status MeasureMany(Engine& engine, TokenIds text, const std::function<void()>& tick,
                     BenchFigures& figures) const {
    for (const std::size_t sequences : together_) {
      const BatchWork work{
          .sequences = sequences, .prompt = prefill_.front(), .decode = decode_, .reps = reps_};
      TROUPE_ASSIGN_OR_RETURN(BatchSpeed speed, TimeBatch(engine, text, work, tick));
      figures.together.push_back(std::move(speed));
    }
    if (joined_prompt_ == 0) return OkStatus();
    figures.joined_prompt = joined_prompt_;
    TROUPE_ASSIGN_OR_RETURN(
        figures.join,
        TimeJoin(engine, text, {.prompt = prefill_.front(), .joined_prompt = joined_prompt_}));
    return OkStatus();
  }

  // After the engine was closed: its memory is the buffer's now, as a budget is for both. A buffer
  // that a small budget makes small may partly lie in the processor's caches.
  Status MeasureMemory(BenchFigures& figures) const {
    constexpr Bytes kEnough = 512_MiB, kLeast = 1_MiB, kSpare = 4_MiB;
    ThreadPool pool(figures.threads);
    ReturnFreeMemory();
    const Bytes taken = ResidentMemory() + kSpare;
    const Bytes left = figures.budget > taken ? figures.budget - taken : Bytes();
    figures.probe = std::clamp(left, kLeast, kEnough);
    TROUPE_ASSIGN_OR_RETURN(figures.memory_bytes_per_s, MeasureReadBandwidth(pool, figures.probe));
    figures.peak_with_probe = PeakResidentMemory();
    return OkStatus();
  }

  // Of each of those that decode in shared passes.
  std::size_t Together() const { return prefill_.front() + decode_; }

  std::size_t Longest() const {
    std::size_t longest = decode_;
    for (const std::size_t n : prefill_) longest = std::max(longest, n);
    for (const std::size_t n : prompt_) longest = std::max(longest, n + decode_);
    for (const std::size_t n : together_) {
      longest = std::max(longest, prefill_.front() + std::max(decode_, n));
    }
    if (joined_prompt_ > 0) longest = std::max(longest, joined_prompt_ + 1);
    return longest;
  }

  Result<std::vector<TokenId>> Text(const Tokenizer& tokenizer) const {
    std::string text(kBenchText);
    if (!prompt_file_.empty()) {
      TROUPE_ASSIGN_OR_RETURN(text, ReadTextFile(prompt_file_));
    }
    Result<std::vector<TokenId>> encoded = tokenizer.Encode(text);
    if (!encoded.ok()) return Status(encoded.status()).WithContext(prompt_file_);
    std::vector<TokenId> ids = std::move(encoded).value();
    if (ids.empty()) return InvalidArgument("{}: no text in it, expected some", prompt_file_);
    for (std::size_t i = 0; ids.size() < Longest(); ++i) ids.push_back(ids[i]);
    return ids;
  }

  template <typename Tick>
  Result<LoneSpeed> TimePrefill(Session& session, TokenIds text, std::size_t length,
                                const Tick& tick) const {
    LoneSpeed m{.prompt = 0, .tokens = length, .per_second = {}};
    for (std::size_t rep = 0; rep <= reps_; ++rep) {  // the first one warms up
      session.Truncate(0);
      const Stopwatch watch;
      TROUPE_RETURN_IF_ERROR(session.FeedPrompt(text.first(length)));
      if (rep == 0) continue;
      m.per_second.push_back(static_cast<double>(length) / watch.Seconds());
      tick();
    }
    return m;
  }

  // Tokens of the text are fed one by one: every repetition does the same work, and no sampler is
  // in the time.
  template <typename Tick>
  Result<LoneSpeed> TimeDecode(Session& session, TokenIds text, std::size_t length,
                               const Tick& tick) const {
    LoneSpeed m{.prompt = length, .tokens = decode_, .per_second = {}};
    for (std::size_t rep = 0; rep < reps_; ++rep) {
      session.Truncate(0);
      TROUPE_RETURN_IF_ERROR(session.FeedPrompt(text.first(length)));
      const Stopwatch watch;
      for (std::size_t i = 0; i < decode_; ++i) {
        TROUPE_RETURN_IF_ERROR(session.Feed(text.subspan(length + i, 1)));
      }
      m.per_second.push_back(static_cast<double>(decode_) / watch.Seconds());
      tick();
    }
    return m;
  }

  EngineFlags engine_;
  TraceFlags trace_;
  std::vector<std::size_t> prefill_ = {128, 512};
  std::vector<std::size_t> prompt_ = {32};
  std::size_t decode_ = 128;
  std::size_t reps_ = 5;
  std::vector<std::size_t> together_;
  std::size_t joined_prompt_ = 0;  // 0: none joins
  std::string prompt_file_, json_;
};

}  // namespace

std::unique_ptr<Command> MakeBenchCommand() { return std::make_unique<BenchCommand>(); }

}  // namespace troupe
