// `troupe bench`: prefill and decode speed over lengths, on real text, against the speed at which
// this machine's threads read memory. For comparisons with other engines see bench/.
#include <algorithm>
#include <string>
#include <vector>

#include "base/clock.h"
#include "kernels/target.h"
#include "machine/bandwidth.h"
#include "machine/process_memory.h"
#include "runtime/session.h"
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

double Median(std::vector<double> values) {
  std::sort(values.begin(), values.end());
  const std::size_t n = values.size();
  return n % 2 == 1 ? values[n / 2] : (values[n / 2 - 1] + values[n / 2]) / 2;
}

struct Measured {
  std::size_t prompt = 0;  // tokens in the cache before
  std::size_t tokens = 0;  // tokens that were timed
  std::vector<double> per_second;
};

class BenchCommand final : public Command {
 public:
  void AddOptions(Options& options) override {
    engine_.AddTo(options);
    options.Heading("Measurement");
    options.Add("--prefill", prefill_, "Prompt lengths to measure prefill with (128,512)")
        .SeparatedBy(',')
        .Between(1, 1 << 24)
        .Type("N,N,…");
    options.Add("--decode", decode_, "Number of tokens to generate and time (128); 0: none")
        .Between(std::size_t{0}, kMostTokens)
        .Type("N");
    options.Add("--prompt-length", prompt_, "Prompt lengths to measure decode after (32)")
        .SeparatedBy(',')
        .Between(1, 1 << 24)
        .Type("N,N,…");
    options.Add("--prompt-file", prompt_file_, "Prompt text, repeated if it is short (built in)")
        .Type("FILE");
    options.Add("--reps", reps_, "Repetitions; the median is reported (5)")
        .Between(1, 1000)
        .Type("N");
    options.Heading(kOutputHeading);
    trace_.AddTo(options);
    AddJsonOption(options, json_);
  }

  Status Run() override {
    TROUPE_ASSIGN_OR_RETURN(const std::unique_ptr<Engine> engine,
                            engine_.Open(Longest(), trace_.scores()));
    TROUPE_ASSIGN_OR_RETURN(const std::unique_ptr<TraceRecorder> recorder, trace_.Begin(*engine));
    TROUPE_ASSIGN_OR_RETURN(Session session, Session::Create(*engine));
    TROUPE_ASSIGN_OR_RETURN(const std::vector<TokenId> text, Text(engine->tokenizer()));
    if (Longest() > session.room()) {
      return Error(Code::kResourceExhausted,
                   "{} tokens are to be timed, the context has {}; --ctx asks for more", Longest(),
                   session.room());
    }
    std::vector<Measured> prefill, decode;
    {
      ProgressBar bar("measuring");
      const std::size_t rounds = reps_ * (prefill_.size() + (decode_ > 0 ? prompt_.size() : 0));
      std::size_t done = 0;
      const auto tick = [&] { bar.Update(Bytes(++done), Bytes(rounds)); };
      for (const std::size_t length : prefill_) {
        TROUPE_ASSIGN_OR_RETURN(Measured m, TimePrefill(session, text, length, tick));
        prefill.push_back(std::move(m));
      }
      for (const std::size_t length : decode_ > 0 ? prompt_ : std::vector<std::size_t>()) {
        TROUPE_ASSIGN_OR_RETURN(Measured m, TimeDecode(session, text, length, tick));
        decode.push_back(std::move(m));
      }
    }
    TROUPE_RETURN_IF_ERROR(trace_.Finish(recorder.get()));
    const Bytes peak = PeakResidentMemory();  // before the probe's own buffer counts
    TROUPE_ASSIGN_OR_RETURN(const double bandwidth, MeasureReadBandwidth(engine->pool()));
    if (json_ != "-") Print(*engine, prefill, decode, bandwidth, peak);
    if (json_.empty()) return OkStatus();
    return WriteJson(Record(*engine, prefill, decode, bandwidth, peak), json_);
  }

 private:
  std::size_t Longest() const {
    std::size_t longest = decode_;
    for (const std::size_t n : prefill_) longest = std::max(longest, n);
    for (const std::size_t n : prompt_) longest = std::max(longest, n + decode_);
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
  Result<Measured> TimePrefill(Session& session, TokenIds text, std::size_t length,
                               const Tick& tick) const {
    Measured m{.prompt = 0, .tokens = length, .per_second = {}};
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
  Result<Measured> TimeDecode(Session& session, TokenIds text, std::size_t length,
                              const Tick& tick) const {
    Measured m{.prompt = length, .tokens = decode_, .per_second = {}};
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

  static void Print(const Engine& engine, const std::vector<Measured>& prefill,
                    const std::vector<Measured>& decode, double bandwidth, Bytes peak) {
    const double touched = static_cast<double>(engine.bytes_touched_per_token().count());
    fmt::print("{:<10} {:>7} {:>7} {:>12} {:>12} {:>10}\n", "", "after", "tokens", "tokens/s",
               "weights GB/s", "of reading");
    for (const Measured& m : prefill) {
      fmt::print("{:<10} {:>7} {:>7} {:>12.1f}\n", "prefill", m.prompt, m.tokens,
                 Median(m.per_second));
    }
    for (const Measured& m : decode) {
      const double rate = Median(m.per_second) * touched;
      fmt::print("{:<10} {:>7} {:>7} {:>12.1f} {:>12.2f} {:>9.0f} %\n", "decode", m.prompt,
                 m.tokens, Median(m.per_second), rate / 1e9, 100 * rate / bandwidth);
    }
    fmt::print("{} threads on {} read {:.1f} GB/s; {} of weights a token; peak memory {}\n",
               engine.plan().threads, Name(ActiveTarget()), bandwidth / 1e9,
               ToString(engine.bytes_touched_per_token()), ToString(peak));
  }

  static Json ToJson(const std::vector<Measured>& all) {
    Json list = Json::Array();
    for (const Measured& m : all) {
      list.push_back({{"prompt", m.prompt},
                      {"tokens", m.tokens},
                      {"median", Median(m.per_second)},
                      {"tokens_per_s", m.per_second}});
    }
    return list;
  }

  static Json Record(const Engine& engine, const std::vector<Measured>& prefill,
                     const std::vector<Measured>& decode, double bandwidth, Bytes peak) {
    Json record;
    record["model"] = engine.path();
    record["threads"] = engine.plan().threads;
    record["target"] = Name(ActiveTarget());
    record["prefill"] = ToJson(prefill);
    record["decode"] = ToJson(decode);
    record["load_s"] = engine.load_seconds();
    record["bytes_touched_per_token"] = engine.bytes_touched_per_token().count();
    record["read_bandwidth_bytes_per_s"] = bandwidth;
    record["peak_rss_bytes"] = peak.count();
    return record;
  }

  EngineFlags engine_;
  TraceFlags trace_;
  std::vector<std::size_t> prefill_ = {128, 512};
  std::vector<std::size_t> prompt_ = {32};
  std::size_t decode_ = 128;
  std::size_t reps_ = 5;
  std::string prompt_file_, json_;
};

}  // namespace

std::unique_ptr<Command> MakeBenchCommand() { return std::make_unique<BenchCommand>(); }

}  // namespace troupe
