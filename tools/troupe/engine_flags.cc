#include "troupe/engine_flags.h"

#include "expert/prefetch/worth_prefetch.h"
#include "expert/substitution/quality_limit.h"
#include "expert/substitution/substitution_spec.h"
#include "text/chat_format.h"
#include "text/jinja/template.h"
#include "troupe/cpu_list.h"
#include "troupe/memory_lock.h"
#include "troupe/options.h"
#include "troupe/progress.h"
#include "troupe/remark.h"
#include "troupe/text_input.h"

namespace troupe {
namespace {

std::vector<std::string> ReadAheadNames() {
  std::vector<std::string> names = PredictorNames();
  names.emplace_back(WorthPrefetch::kName);
  return names;
}

Result<std::string> ReadChatTemplate(const std::string& path) {
  constexpr std::size_t kMostBytes = 1 << 20;
  TROUPE_ASSIGN_OR_RETURN(std::string text, ReadTextFile(path, kMostBytes));
  if (text.empty()) return InvalidArgument("{}: an empty template", path);
  if (RecogniseChatFormat(text).ok()) return text;
  const auto parsed = jinja::Template::Parse(text);
  if (!parsed.ok()) return Status(parsed.status()).WithContext(path);
  return text;
}

}  // namespace

void EngineFlags::AddTo(Options& options, ModelArgument model) {
  options.Heading(kBasicHeading);
  Option& path = AddModelOption(
      options, "-m,--model,MODEL", model_,
      "Model: a GGUF file (any part of a split one), or a name that `troupe list` shows");
  if (model == ModelArgument::kRequired) path.Required();
  AddThreadsOption(options, threads_);
  options
      .AddParsed(
          "--cpus",
          [](const std::string& text) -> Status {
            TROUPE_ASSIGN_OR_RETURN(const std::vector<unsigned> cpus, ParseCpuList(text));
            return RunOnCpus(cpus);
          },
          "Processors to run on, such as 0-3,6 (all)")
      .Type("LIST");
  options
      .Add("-c,--ctx", context_,
           "Context length in tokens (the trained context, at most 4096; of `run` and "
           "`bench` no more than prompt and answer come to)")
      .Between(1u, 1u << 30)
      .Type("N");
  AddMemoryOptions(options);
  AddCardOptions(options);
  AddPredictionOptions(options);
  AddLossyOptions(options);
}

void EngineFlags::AddMemoryOptions(Options& options) {
  options.Heading("Memory and experts");
  options
      .Add("--memory", memory_,
           "Memory budget (free memory minus a reserve); experts that do not fit are read from the "
           "disk when they are needed")
      .Check(CheckSizeHasUnit)
      .Type("SIZE");
  options.AddFlag("--mlock", locks_,
                  "Keep what is in memory there: the system may not swap it out");
  options
      .AddParsed(
          "--kv-type",
          [this](const std::string& text) {
            kv_q8_0_ = text == "q8_0";
            return OkStatus();
          },
          "Type of the KV cache: f16, or q8_0 at half the size (f16)")
      .OneOf({"f16", "q8_0"})
      .Type("TYPE");
  options.Add("--chunk", chunk_, "Largest number of prompt tokens computed in one pass (512)")
      .Between(1u, 1u << 20)
      .Type("N");
  options
      .Add("--experts", offload_.container,
           "Packed experts to read from; none: read from the model file (MODEL.experts if it "
           "exists)")
      .Suggest({"none"})
      .Type("FILE");
  options
      .Add("--slots", offload_.slots,
           "Largest number of experts to keep in memory (as many as fit)")
      .Between(kLeastSlots, 1u << 30)
      .Type("N");
  options
      .Add("--cache", offload_.policy,
           "Eviction policy: lru, lfu, arc, score (evicts the lowest recent mean gate score), echo "
           "(keeps experts that followed similar routing earlier) (echo)")
      .OneOf(EvictionPolicyNames())
      .Type("POLICY");
  options
      .AddParsed(
          "--cache-share",
          [this](const std::string& text) {
            offload_.sharing = text == "global" ? CacheSharing::kGlobal : CacheSharing::kPerLayer;
            return OkStatus();
          },
          "layer: each layer has its own part of the cache; global: all layers share one cache "
          "(layer)")
      .OneOf({"layer", "global"})
      .Type("SHARE");
  options
      .Add("--shallow", offload_.shallow_layers,
           "Number of first layers whose experts are kept before those of other layers (the best "
           "number in the profile, otherwise 0)")
      .Type("N");
  options
      .AddParsed(
          "--fill",
          [this](const std::string& text) {
            asked_to_fill_.reset();
            if (text != "auto") asked_to_fill_ = text == "on" ? FillCache::kYes : FillCache::kNo;
            return OkStatus();
          },
          "Read the experts that the profile says are used most before the first request: on, off, "
          "or auto: with `serve`, where there is a profile (auto)")
      .OneOf({"auto", "on", "off"})
      .Type("WHEN");
  options
      .AddParsed(
          "--reader",
          [this](const std::string& text) {
            offload_.reader.kind = *ReaderKindByName(text);
            return OkStatus();
          },
          "How files are read while the model runs: uring, threads or auto (auto)")
      .OneOf({"auto", "uring", "threads"})
      .Type("KIND");
  options
      .AddParsed(
          "--link",
          [this](const std::string& text) -> Status {
            TROUPE_ASSIGN_OR_RETURN(offload_.link, ParseLinkSpeed(text));
            return OkStatus();
          },
          "Simulate a slower disk: bytes per second, and latency, such as 500MiB/100us")
      .Type("SPEED");
}

void EngineFlags::AddCardOptions(Options& options) {
  options
      .Add("--gpu", card_.choice,
           "Card whose memory holds experts, too, and which answers by them with the same bytes "
           "where that is quicker: auto (the largest card, if there is one), none (loads no "
           "driver), or a part of a device's name or platform (none)")
      .Suggest({"auto", "none"})
      .Type("NAME");
  options
      .Add("--vram", card_.memory,
           "With --gpu: budget of the card's memory (nine tenths of it, and no more than all but "
           "512 "
           "MiB)")
      .Check(CheckSizeHasUnit)
      .Type("SIZE");
}

void EngineFlags::AddPredictionOptions(Options& options) {
  options.Heading("Prediction");
  options
      .Add(
          "--predict", offload_.predictor,
          "Predictor of the experts to prefetch: none, lookahead (the gates of the next layers, "
          "evaluated early and corrected by earlier misses), scores (what the routers of the last "
          "layers and the last token said, as far as a load is worth it), top-score (the same, "
          "without experts "
          "that --substitute replaces), smoe (the next layer's gate, once the shared expert and "
          "the "
          "experts in memory have answered), gate (the next layer's gate, uncorrected), eap "
          "(routing "
          "paths seen before), previous (the experts of the previous token), wrong (a control: the "
          "experts that the gate ranks last), or auto: lookahead, "
          "or top-score with --substitute (auto)")
      .OneOf(ReadAheadNames())
      .Type("WHAT");
  options
      .Add("--profile", offload_.profile,
           "What `troupe calibrate` learned about the model: a file, or none (the file beside the "
           "model if it exists)")
      .Suggest({"none"})
      .Type("FILE");
  options
      .Add("--score-tables", offload_.score_tables,
           "With --predict scores: what `troupe calibrate` learned of misses, a file, or none (the "
           "file beside the model if it exists)")
      .Suggest({"none"})
      .Type("FILE");
  options.AddFlag(
      "--ungoverned", [this] { offload_.prefetch.governed = false; },
      "Prefetch every predicted expert, even if it does not pay");
}

void EngineFlags::AddLossyOptions(Options& options) {
  options.Heading("Lossy answers");
  options
      .AddParsed(
          "--low-copy",
          [this](const std::string& text) -> Status {
            TROUPE_ASSIGN_OR_RETURN(offload_.low_copies, ParseLowCopies(text));
            return OkStatus();
          },
          "Lossy: read experts in the low-precision copy made by `troupe pack --low`. "
          "prefill=SHARE: the least popular experts of a prompt, up to this share of each layer's "
          "work; decode: experts that a generated token misses; both with a comma (off)")
      .Suggest({"off", "decode", "prefill="})
      .Type("WHICH");
  options
      .AddParsed(
          "--substitute",
          [this](const std::string& text) {
            if (text != "exact") offload_.lossiness = Chain{text};
            return OkStatus();
          },
          "Lossy: replace missing experts of generated tokens by a chain of policies, such as "
          "smoe:alpha=0.3, buddies or drop:most-share=0.1, joined by +; `--substitute help` lists "
          "them; prompts stay exact (exact)")
      .Check([](const std::string& text) -> Status {
        if (text.find_first_of(",;") == std::string::npos) return OkStatus();
        return InvalidArgument("'{}' found, expected one chain, its policies joined by +", text);
      })
      .Answers("help", SubstitutionHelp)
      .Suggest({"exact", "help"})
      .Type("CHAIN");
  options
      .Add("--buddies", offload_.buddies,
           "Which experts `--substitute buddies` may use in place of which, as `troupe calibrate` "
           "measured it (the file beside the model)")
      .Type("FILE");
  options
      .AddParsed(
          "--quality",
          [this](const std::string& text) -> Status {
            TROUPE_ASSIGN_OR_RETURN(offload_.lossiness, ParseQuality(text));
            return OkStatus();
          },
          "Quality to give up for speed: exact: none; N%: at most this loss of perplexity, by the "
          "figures of `troupe calibrate --measure-quality`; balanced: 1%; fast: 5% (exact)")
      .Suggest({"exact", "balanced", "fast"})
      .Excludes("--substitute")
      .Excludes("--low-copy")
      .Type("Q");
  options
      .AddParsed(
          "--latency",
          [this](const std::string& text) -> Status {
            double milliseconds = 0;
            TROUPE_RETURN_IF_ERROR(ParseValue(text, milliseconds));
            offload_.lossiness = LatencyTarget{milliseconds / 1e3};
            return OkStatus();
          },
          "Lossy: lose as little quality as needed to generate a token in MS milliseconds, by "
          "what `troupe calibrate` measured on this machine (off)")
      .Between(0.001, 1e6)
      .Excludes("--substitute")
      .Excludes("--quality")
      .Excludes("--low-copy")
      .Type("MS");
  options
      .AddParsed(
          "--gate",
          [this](const std::string& text) -> Status {
            TROUPE_ASSIGN_OR_RETURN(offload_.gate.choice, ParseGate(text));
            return OkStatus();
          },
          "What chooses a token's experts: exact (the model's own gates), or lossy: groups (a gate "
          "of groups, then the model's own gate within the best of them), which `troupe calibrate "
          "--groups` learns; groups:looked=N looks into N groups, :fusion=product multiplies both "
          "gates (exact)")
      .Suggest({"exact", "groups"})
      .Excludes("--quality")
      .Excludes("--latency")
      .Type("GATE");
  options.Add("--group-gate", offload_.gate.file, "The group gate (the file beside the model)")
      .Type("FILE");
  options
      .Add("--quality-curve", offload_.quality_curve,
           "The figures of `troupe calibrate --measure-quality` (the file beside the model)")
      .Type("FILE");
}

void EngineFlags::AddSpeculation(Options& options) {
  drafters_ = *ParseDraftChoice("auto");
  options.Heading("Speculation");
  options
      .AddParsed(
          "--speculate",
          [this](const std::string& name) -> Status {
            TROUPE_ASSIGN_OR_RETURN(drafters_, ParseDraftChoice(name));
            return OkStatus();
          },
          "Tokens to guess and check several in a pass, where that is faster; answers stay the "
          "same: lookup (what the text has said before), grammar (what a rule of the answer "
          "forces), draft (what the model of --draft says), heads (what a head of the model's own "
          "says), auto (all of these), resident (what the model says by the experts in memory "
          "alone), off; wrong, random: controls (auto)")
      .OneOf(DraftChoiceNames())
      .Type("WHAT");
  AddModelOption(
      options, "--draft", draft_,
      "A small GGUF model with the same vocabulary, which guesses tokens as well; its memory "
      "is a part of --memory (none)");
}

void EngineFlags::AddChatTemplate(Options& options) {
  options
      .AddParsed(
          "--chat-template",
          [this](const std::string& path) -> Status {
            Result<std::string> text = ReadChatTemplate(path);
            // The line is right, whatever the file is: who opens the model is told.
            chat_template_status_ = Status(text.status()).WithContext("--chat-template");
            if (text.ok()) chat_template_ = *std::move(text);
            return OkStatus();
          },
          "Chat template to use in place of the model's own (Jinja; a file)")
      .Type("FILE");
}

void EngineFlags::AllowLowCopies() {
  offload_.low_copies = {.prefill_share = 1};
  if (offload_.slots) return;
  offload_.slots = kLeastSlots;
  offload_.predictor = "none";
}

void EngineFlags::LoseNothing() {
  offload_.lossiness = Exact{};
  offload_.low_copies = {};
  offload_.gate = {};
}

EngineOptions EngineFlags::options() const {
  EngineOptions options;
  if (threads_ > 0) options.threads = static_cast<std::uint32_t>(threads_);
  if (context_ > 0) options.context = context_;
  options.memory = memory_;
  options.chunk = chunk_;
  options.sequences = sequences_;
  options.sequence_length = sequence_length_;
  options.fingerprint = fingerprint_;
  options.offload = offload_;
  options.offload.fill = asked_to_fill_.value_or(fills_);
  options.card = card_;
  options.drafters = drafters_;
  options.draft = draft_;
  options.chat_template = chat_template_;
  options.text = text_;
  options.beside = beside_;
  options.serving = serving_;
  options.experts_for_peers = experts_for_peers_;
  options.kv_type = kv_q8_0_ ? KvType::kQ8_0 : KvType::kF16;
  return options;
}

Result<std::unique_ptr<Engine>> EngineFlags::Open(std::size_t least_context,
                                                  std::optional<TraceScores> trace,
                                                  const std::function<bool()>& go_on) const {
  TROUPE_RETURN_IF_ERROR(chat_template_status_);
  if (card_.memory && !card_.wanted()) {
    return InvalidArgument("--vram {}: no card is asked for (--gpu auto takes the largest one)",
                           ToString(*card_.memory));
  }
  if (!offload_.score_tables.empty() && offload_.score_tables != "none" &&
      !WorthPrefetch::IsMeant(offload_.predictor)) {
    return InvalidArgument("--score-tables {}: read with --predict scores alone, found '{}'",
                           offload_.score_tables, offload_.predictor);
  }
  EngineOptions opened = options();
  opened.trace = trace;
  if (trace) {  // which is of a cache that begins empty, as a replay's does
    if (opened.offload.fill == FillCache::kYes) {
      return InvalidArgument("--fill on, with --trace: a recorded run begins with an empty cache");
    }
    opened.offload.fill = FillCache::kNo;
    // A replay begins with the tables that it is told, and a trace does not say which a run had.
    if (opened.offload.score_tables.empty()) opened.offload.score_tables = "none";
  }
  opened.least_context =
      static_cast<std::uint32_t>(std::min<std::size_t>(least_context, opened.kDefaultContext));
  opened.on_plan = [](const MemoryPlan& plan) {  // the kernel may end a program that takes too much
    for (const std::string& note : plan.notes) Remark("note: {}\n", note);
    for (const std::string& warning : plan.warnings) Remark("warning: {}\n", warning);
  };
  if (locks_) TROUPE_RETURN_IF_ERROR(LockMemory());
  ProgressBar bar("loading");
  TROUPE_ASSIGN_OR_RETURN(std::unique_ptr<Engine> engine,
                          Engine::Open(model_, opened, [&](Bytes done, Bytes total) {
                            bar.Update(done, total);
                            return !go_on || go_on();
                          }));
  bar.Clear();
  if (const auto offload = engine->offload_report(); offload && offload->filled.experts > 0) {
    Remark(
        "note: the cache begins with the {} experts that the profile says are used most, read in "
        "{:.2f} s\n",
        offload->filled.experts, offload->filled.seconds);
  }
  return engine;
}

}  // namespace troupe
