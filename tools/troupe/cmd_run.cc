// `troupe run`: text, a file or token ids in, text out as it comes, figures at the end.
#include <troupe/model.h>

#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <optional>
#include <string>
#include <string_view>

#include "api/model_access.h"
#include "io/text_file.h"
#include "lab/logits_file.h"
#include "runtime/machine_costs.h"
#include "runtime/pass_times.h"
#include "troupe/chat.h"
#include "troupe/commands.h"
#include "troupe/engine_flags.h"
#include "troupe/interrupt.h"
#include "troupe/json_record.h"
#include "troupe/options.h"
#include "troupe/prompt_input.h"
#include "troupe/remark.h"
#include "troupe/run_record.h"
#include "troupe/sampler_flags.h"
#include "troupe/shown_answer.h"
#include "troupe/time_explained.h"
#include "troupe/trace_flags.h"

namespace troupe {
namespace {

class RunCommand final : public Command {
 public:
  void AddOptions(Options& options) override {
    options.Heading("Generation");
    input_.AddTo(options);
    options.AddFlag("-i,--chat", chat_,
                    "Chat with the model in its own chat format, as at a terminal without a "
                    "prompt; /help lists what else can be said");
    options.Add("--system", system_, "System message of the chat").Type("TEXT");
    engine_.AddChatTemplate(options);
    options
        .Add("-n,--tokens", tokens_,
             "Most tokens to generate; -1: no limit (128; no limit in a chat)")
        .Between(std::int64_t{-1}, std::int64_t{kMostTokens})
        .Type("N");
    options.Add("--stop", stop_, "Stop before this text; may be repeated").Type("TEXT");
    options.AddFlag("--ignore-eos", ignore_end_, "Continue after the model's end token");
    sampler_.AddTo(options);
    engine_.AddTo(options);
    engine_.AddSpeculation(options);
    input_.AddArgumentTo(options);
    options.Heading(kOutputHeading);
    trace_.AddTo(options);
    AddOutputOption(options, "--logits", logits_, "Save the logits of each generated token");
    options.AddFlag("--explain", explain_, "Print the memory plan and explain the first misses");
    options.AddFlag("--explain-time", explain_time_,
                    "Explain the slowest of the last tokens: what each layer waited for, and why "
                    "it was not read earlier");
    AddOutputOption(options, "--plot-timeline", timeline_,
                    "Plot when the last tokens computed, waited and read, as .svg");
    options.AddFlag("--no-echo", no_echo_, "Print the answer alone, not the prompt before it");
    options.AddFlag("--quiet", quiet_, "Print no figures after an answer");
    AddJsonOption(options, json_);
  }

  Status CheckUsage() const override {
    TROUPE_RETURN_IF_ERROR(input_.CheckUsage());
    if (chat_ && (input_.has_ids() || !logits_.empty())) {
      return InvalidArgument("--chat takes no --prompt-ids and no --logits");
    }
    if (!Chats() && !input_.given() && !PromptInput::IsPiped()) {
      return InvalidArgument(
          "nothing to run: give --prompt, --file, --prompt-ids or --chat, or a text by a pipe");
    }
    if (json_ == "-" && trace_.to_standard_output()) {
      return InvalidArgument("--trace - and --json -: standard output is for one of them");
    }
    if (std::ranges::find(stop_, "") != stop_.end()) {
      return InvalidArgument("--stop: an empty text stops nowhere, expected some");
    }
    if (!timeline_.empty() && !timeline_.ends_with(".svg")) {
      return InvalidArgument("--plot-timeline: '{}', expected a name that ends in .svg", timeline_);
    }
    if (!Chats() && !system_.empty()) return InvalidArgument("--system needs --chat");
    return sampler_.Sampler().status();
  }

  Status Run() override {
    TROUPE_ASSIGN_OR_RETURN(const Sampling sampling, sampler_.Sampler());
    std::vector<TokenId> prompt;
    if (!Chats()) {
      engine_.ReadsOneText([&](const Tokenizer& tokenizer, std::uint32_t most) {
        return ReadPrompt(tokenizer, most, prompt);
      });
    }
    TROUPE_ASSIGN_OR_RETURN(std::unique_ptr<Engine> opened, engine_.Open(0, trace_.scores()));
    TROUPE_ASSIGN_OR_RETURN(const std::unique_ptr<Model> model, ModelAccess::Of(std::move(opened)));
    Engine& engine = ModelAccess::EngineOf(*model);
    // Watches the engine, which outlives it; null without --trace.
    TROUPE_ASSIGN_OR_RETURN(const std::unique_ptr<TraceRecorder> recorder, trace_.Begin(engine));
    if (explain_) {
      PrintPlan(engine, sampling);
      ExplainMisses(engine);
    }
    if (explain_time_ || !timeline_.empty()) engine.WatchTime(&times_);
    return Chats() ? TalkOn(*model, recorder.get(), sampling)
                   : AnswerOnce(*model, recorder.get(), sampling, prompt);
  }

 private:
  // Whoever types `troupe run MODEL` and nothing to continue wants to talk.
  bool Chats() const {
    return chat_ || (!input_.given() && logits_.empty() && PromptInput::IsTerminal());
  }

  // Where it has no end, what follows is cut short by nothing but the context.
  Result<TextLength> ReadPrompt(const Tokenizer& tokenizer, std::uint32_t most,
                                std::vector<TokenId>& prompt) const {
    TROUPE_ASSIGN_OR_RETURN(prompt, input_.Tokens(tokenizer, most));
    if (prompt.size() > most) {
      return Error(Code::kResourceExhausted,
                   "{}: the prompt has {} tokens, the context {}; --ctx asks for more",
                   input_.name(), prompt.size(), most);
    }
    const auto with_answer = [&](std::size_t tokens) {
      return static_cast<std::uint32_t>(
          std::min<std::size_t>(most, std::max<std::size_t>(1, prompt.size() + tokens)));
    };
    const std::size_t answer = MostTokens(kUsualTokens);
    return TextLength{.least = with_answer(std::min<std::size_t>(answer, kUsualTokens)),
                      .most = with_answer(answer),
                      .read = static_cast<std::uint32_t>(prompt.size())};
  }

  std::size_t MostTokens(std::int64_t unasked) const {
    const std::int64_t most = tokens_.value_or(unasked);
    return most < 0 ? kMostTokens : static_cast<std::size_t>(most);
  }

  Request Asking(const Sampling& sampling, std::int64_t tokens) const {
    return {.prompt = {},
            .max_tokens = MostTokens(tokens),
            .sampling = sampling,
            .stop = stop_,
            .ignore_end = ignore_end_};
  }

  Status TalkOn(Model& model, TraceRecorder* recorder, const Sampling& sampling) const {
    const Engine& engine = ModelAccess::EngineOf(model);
    ChatOptions options{.system = system_,
                        .first = {},
                        .shows_text = ShowsText(),
                        .tells_figures = !quiet_,
                        .records = !json_.empty()};
    if (input_.given()) {
      TROUPE_ASSIGN_OR_RETURN(options.first,
                              input_.Text(engine.tokenizer(), engine.plan().context()));
    }
    TROUPE_ASSIGN_OR_RETURN(const TalkEnd end, Chat(model, Asking(sampling, kNoLimit), options));
    TROUPE_RETURN_IF_ERROR(End(engine, recorder));
    if (!json_.empty()) TROUPE_RETURN_IF_ERROR(WriteJson(end.record, json_));
    return end.interrupted ? Error(Code::kCancelled, "interrupted") : OkStatus();
  }

  Status AnswerOnce(Model& model, TraceRecorder* recorder, const Sampling& sampling,
                    const std::vector<TokenId>& prompt) const {
    Engine& engine = ModelAccess::EngineOf(model);
    const InterruptGuard guard;
    if (!quiet_) input_.NoteWhatIsNotRead();
    if (ShowsText() && !no_echo_) PrintNow(input_.shown());
    Request request = Asking(sampling, kUsualTokens);
    request.prompt = prompt;
    TROUPE_ASSIGN_OR_RETURN(const Answer answer, Stream(model, std::move(request)));
    if (ShowsText()) fmt::print("\n");
    std::fflush(stdout);
    TROUPE_RETURN_IF_ERROR(End(engine, recorder, &answer));
    if (!json_.empty()) {
      TROUPE_RETURN_IF_ERROR(WriteJson(RunRecord(engine, prompt, sampling, answer), json_));
    }
    return InterruptGuard::interrupted() ? Error(Code::kCancelled, "interrupted") : OkStatus();
  }

  // What an answer and a talk have in common at their end. A talk has told its figures, of each
  // answer by itself.
  Status End(const Engine& engine, TraceRecorder* recorder, const Answer* answer = nullptr) const {
    if (explain_) {
      ExplainSubstitution(engine);
      ExplainGate(engine);
      ExplainCard(engine);
    }
    if (explain_ && answer != nullptr) {
      ExplainForesight(answer->usage);
      ExplainSpeculation(engine, answer->usage);
    }
    TROUPE_RETURN_IF_ERROR(TellTime(engine));
    if (answer != nullptr) {
      const RunFigures figures = FiguresOf(engine, *answer);
      if (quiet_) {
        Remark("{}", RunLossLines(figures));  // an answer that is not exact never looks like one
      } else {
        Remark("{}\n{}{}", RunSentence(figures), RunLossLines(figures), RunDetailLines(figures));
      }
    }
    RememberRun(engine, answer != nullptr ? SeenOf(engine, answer->usage) : TokensSeen());
    return trace_.Finish(recorder);
  }

  // Where the last tokens' time went, if somebody asked.
  Status TellTime(const Engine& engine) const {
    const std::optional<OffloadReport> offload = engine.offload_report();
    ReadFrom from;
    if (offload) {
      from = {.medium = fmt::format("{} by {}", offload->store, offload->reader),
              .bytes_per_second = offload->recent_bytes_per_second};
    }
    const TimedPass* slowest = times_.Slowest();
    if (explain_time_ && slowest == nullptr) {
      Remark("time: {}\n", offload ? "no token was computed after the first one"
                                   : "every expert is in memory, nothing is waited for");
    } else if (explain_time_) {
      Remark("the slowest of the last {} tokens:\n{}", times_.passes().size(),
             ExplainTime(*slowest, from));
    }
    if (timeline_.empty()) return OkStatus();
    return WriteWholeText(timeline_, TimelineSvg(times_, kPlottedTokens, engine.path(), from));
  }

  // Where experts are left out or replaced by smaller copies it is not known what was computed, nor
  // what of it was for a token where some were guessed.
  static TokensSeen SeenOf(const Engine& engine, const Usage& usage) {
    const ExpertUsage& experts = usage.decode_experts;
    if (experts.dropped > 0 || experts.low_copies > 0) return {};
    // Passes of several tokens, or time of another model.
    if (usage.speculation.checks > 0 || usage.speculation.drafting_seconds > 0) return {};
    return {.tokens = usage.decode_steps,
            .seconds = usage.decode_pass_seconds,
            .stall_seconds = experts.stall_seconds,
            .touched = engine.bytes_touched_per_token()};
  }

  // With the record on stdout the text is in it, and nothing else may be there; nor beside a trace.
  bool ShowsText() const { return json_ != "-" && !trace_.to_standard_output(); }

  // Writes text and logits as they come.
  Result<Answer> Stream(Model& model, Request request) const {
    Callbacks callbacks;
    std::size_t shown = 0;
    if (ShowsText()) {
      callbacks.on_piece = [&shown](const Piece& piece) {
        shown += piece.text.size();
        return PrintNow(piece.text);
      };
    }
    TROUPE_ASSIGN_OR_RETURN(Answer answer,
                            StreamLogits(model, std::move(request), std::move(callbacks)));
    // An interrupt that came after a token and before its piece.
    if (ShowsText()) PrintNow(std::string_view(answer.text).substr(shown));
    return answer;
  }

  Result<Answer> StreamLogits(Model& model, Request request, Callbacks callbacks) const {
    if (logits_.empty()) return AnswerOf(model, std::move(request), std::move(callbacks));
    TROUPE_ASSIGN_OR_RETURN(
        LogitsWriter writer,
        LogitsWriter::Create(logits_, ModelAccess::EngineOf(model).config().vocabulary));
    callbacks.on_logits = [&writer](TokenId token, std::span<const float> logits) {
      return writer.Append(token, logits);
    };
    TROUPE_ASSIGN_OR_RETURN(const Answer answer,
                            AnswerOf(model, std::move(request), std::move(callbacks)));
    TROUPE_RETURN_IF_ERROR(writer.Finish());
    return answer;
  }

  EngineFlags engine_;
  SamplerFlags sampler_;
  TraceFlags trace_;
  static constexpr std::int64_t kUsualTokens = 128, kNoLimit = -1;

  PromptInput input_;
  // Tokens of which the slowest is explained, and those that are plotted.
  static constexpr std::size_t kWatchedTokens = 32, kPlottedTokens = 8;
  PassTimes times_{kWatchedTokens};

  std::string system_, logits_, timeline_, json_;
  std::vector<std::string> stop_;
  std::optional<std::int64_t> tokens_;
  bool chat_ = false;
  bool ignore_end_ = false;
  bool no_echo_ = false, quiet_ = false;
  bool explain_ = false, explain_time_ = false;
};

}  // namespace

std::unique_ptr<Command> MakeRunCommand() { return std::make_unique<RunCommand>(); }

}  // namespace troupe
