#include "troupe/engine_flags.h"

#include "expert/substitution/quality_limit.h"
#include "expert/substitution/substitution_spec.h"
#include "troupe/options.h"
#include "troupe/progress.h"
#include "troupe/remark.h"

namespace troupe {

void EngineFlags::AddTo(CLI::App& app) {
  app.add_option("model", model_, "Model file (GGUF; of a split model any part)")
      ->required()
      ->type_name("MODEL");
  AddThreadsOption(app, threads_);
  app.add_option("--ctx", context_, "Tokens of context (the trained context, at most 4096)")
      ->check(Between(1u, 1u << 30))
      ->type_name("N");
  AddBytesOption(
      app, "--memory", memory_,
      "Most memory to use (what is free, less a reserve); experts that do not fit are read "
      "when they are needed")
      ->each([this](const std::string&) { given_memory_ = true; });
  app.add_option_function<std::string>(
         "--kv-type", [this](const std::string& text) { kv_q8_0_ = text == "q8_0"; },
         "Form of the KV cache: f16, or q8_0 at half the size (f16)")
      ->check(CLI::IsMember({"f16", "q8_0"}))
      ->type_name("TYPE");
  app.add_option("--chunk", chunk_, "Tokens of a prompt computed together, at most (512)")
      ->check(Between(1u, 1u << 20))
      ->type_name("N");
  app.add_option("--experts", offload_.container,
                 "Packed experts to read from, or none for the model file itself (MODEL.experts if "
                 "there is one)")
      ->type_name("FILE");
  app.add_option("--slots", offload_.slots, "Experts to keep in memory, at most (as many as fit)")
      ->check(Between(kLeastSlots, 1u << 30))
      ->type_name("N");
  app.add_option(
         "--cache", offload_.policy,
         "Which expert a full cache gives up: lru, lfu, arc, score (the least mean score of "
         "late), or echo, which keeps what followed when the text was alike before (echo)")
      ->check(CLI::IsMember(EvictionPolicyNames()))
      ->type_name("POLICY");
  app.add_option_function<std::string>(
         "--cache-share",
         [this](const std::string& text) {
           offload_.sharing = text == "global" ? CacheSharing::kGlobal : CacheSharing::kPerLayer;
         },
         "layer: each layer has its share of the cache; global: all are one pool (layer)")
      ->check(CLI::IsMember({"layer", "global"}))
      ->type_name("SHARE");
  app.add_option(
         "--shallow", offload_.shallow_layers,
         "Layers, from the first on, whose experts are kept before others' (what the profile "
         "found best, else 0)")
      ->type_name("N");
  app.add_option("--predict", offload_.predictor,
                 "Read ahead what this expects of the next layers: none, lookahead (their gates, "
                 "asked early and corrected by what that missed before), top-score (of these only "
                 "what --substitute does not replace), gate (the next one's, "
                 "uncorrected), eap (paths seen before), previous (token), or auto: lookahead, or "
                 "top-score with --substitute (auto)")
      ->check(CLI::IsMember(PredictorNames()))
      ->type_name("WHAT");
  app.add_option("--profile", offload_.profile,
                 "What troupe calibrate learned of the model: a file, or none (the one beside the "
                 "model if there is one)")
      ->type_name("FILE");
  app.add_flag_callback(
      "--ungoverned", [this] { offload_.prefetch.governed = false; },
      "Read ahead everything that is expected, whether it pays or not");
  app.add_option_function<std::string>(
         "--reader",
         [this](const std::string& text) { offload_.reader.kind = *ReaderKindByName(text); },
         "How files are read while tokens flow: uring, threads or auto (auto)")
      ->check(CLI::IsMember({"auto", "uring", "threads"}))
      ->type_name("KIND");
  app.add_option_function<std::string>(
         "--link",
         [this](const std::string& text) {
           Result<LinkSpeed> link = ParseLinkSpeed(text);
           if (!link.ok()) throw CLI::ValidationError("--link", link.status().message());
           offload_.link = *link;
         },
         "Read as through a slower link: bytes a second, and latency (500MiB/100us)")
      ->type_name("SPEED");
  app.add_option_function<std::string>(
         "--low-copy",
         [this](const std::string& text) {
           Result<LowCopyOptions> low = ParseLowCopies(text);
           if (!low.ok()) throw CLI::ValidationError("--low-copy", low.status().message());
           offload_.low_copies = *low;
         },
         "Not exact: read experts in the low copy that `troupe pack --low` made. prefill=SHARE: a "
         "prompt's least popular ones, up to that share of each layer's work; decode: those that a "
         "token misses; both with a comma (off)")
      ->type_name("WHICH");
  app.add_option("--substitute", offload_.substitution,
                 "Not exact: answer tokens' missing experts by a chain of policies, such as "
                 "smoe:alpha=0.3, buddies or drop:most-share=0.1, joined by +; help lists them; "
                 "prompts stay exact (exact)")
      ->each([](const std::string& text) {
        if (text != "help") return;
        fmt::print("{}", SubstitutionHelp());
        throw CLI::Success();
      })
      ->type_name("CHAIN");
  app.add_option(
         "--buddies", offload_.buddies,
         "Which experts --substitute buddies takes for which, as troupe calibrate found out "
         "(beside the model)")
      ->type_name("FILE");
  app.add_option("--quality", offload_.quality,
                 "What may be lost for speed: exact: nothing; N%: so much of perplexity, by what "
                 "troupe calibrate --measure-quality found; balanced: 1%; fast: 5% (exact)")
      ->check(CLI::Validator(
          [](const std::string& text) {
            const Result<double> loss = ParseQuality(text);
            return loss.ok() ? std::string() : loss.status().message();
          },
          ""))
      ->excludes(app.get_option("--substitute"))
      ->excludes(app.get_option("--low-copy"))
      ->type_name("Q");
  app.add_option_function<double>(
         "--latency", [this](double milliseconds) { offload_.token_seconds = milliseconds / 1e3; },
         "Not exact: lose as little as makes a token take so many milliseconds, by what calibrate "
         "measured on this machine (off)")
      ->check(Between(0.001, 1e6))
      ->excludes(app.get_option("--substitute"))
      ->excludes(app.get_option("--quality"))
      ->excludes(app.get_option("--low-copy"))
      ->type_name("MS");
  app.add_option("--quality-curve", offload_.quality_curve,
                 "What calibrate found of that (beside the model)")
      ->type_name("FILE");
}

void EngineFlags::AllowLowCopies() {
  offload_.low_copies = {.prefill_share = 1};
  if (offload_.slots) return;
  offload_.slots = kLeastSlots;
  offload_.predictor = "none";
}

EngineOptions EngineFlags::options() const {
  EngineOptions options;
  if (threads_ > 0) options.threads = static_cast<std::uint32_t>(threads_);
  if (context_ > 0) options.context = context_;
  if (given_memory_) options.memory = memory_;
  options.chunk = chunk_;
  options.offload = offload_;
  options.beside = beside_;
  options.kv_type = kv_q8_0_ ? KvType::kQ8_0 : KvType::kF16;
  return options;
}

Result<std::unique_ptr<Engine>> EngineFlags::Open(std::size_t least_context,
                                                  std::optional<TraceScores> trace) const {
  EngineOptions opened = options();
  opened.trace = trace;
  opened.least_context =
      static_cast<std::uint32_t>(std::min<std::size_t>(least_context, opened.kDefaultContext));
  Result<std::unique_ptr<Engine>> engine = [&] {
    ProgressBar bar("loading");
    return Engine::Open(model_, opened, bar.Callback());
  }();
  if (!engine.ok()) return engine;
  const MemoryPlan& plan = (*engine)->plan().memory;
  for (const std::string& note : plan.notes) Remark("note: {}\n", note);
  for (const std::string& warning : plan.warnings) Remark("warning: {}\n", warning);
  return engine;
}

}  // namespace troupe
