// `troupe run`: text, a file or token ids in, text out as it comes, a line of figures at the end.
#include <troupe/model.h>

#include <algorithm>
#include <cstdio>
#include <optional>
#include <string>
#include <string_view>

#include "api/model_access.h"
#include "lab/logits_file.h"
#include "runtime/machine_costs.h"
#include "troupe/chat.h"
#include "troupe/commands.h"
#include "troupe/engine_flags.h"
#include "troupe/interrupt.h"
#include "troupe/json_record.h"
#include "troupe/options.h"
#include "troupe/remark.h"
#include "troupe/run_record.h"
#include "troupe/sampler_flags.h"
#include "troupe/shown_answer.h"
#include "troupe/text_input.h"
#include "troupe/trace_flags.h"

namespace troupe {
namespace {

class RunCommand final : public Command {
 public:
  void AddOptions(Options& options) override {
    options.Heading("Generation");
    options.Add("-p,--prompt", prompt_, "Text to continue").Type("TEXT");
    options.Add("--file", file_, "Read the prompt from a file (- for standard input)").Type("FILE");
    options.Add("--prompt-ids", prompt_ids_, "Prompt as exact token ids: 1,306,…").Type("IDS");
    options.AddFlag("--chat", chat_, "Chat with the model in its own chat format");
    options.Add("--system", system_, "System message of the chat").Type("TEXT");
    options.Add("-n,--tokens", tokens_, "Most tokens to generate (128; no limit in a chat)")
        .Between(std::size_t{0}, kMostTokens)
        .Type("N");
    options.Add("--stop", stop_, "Stop before this text; may be repeated").Type("TEXT");
    options.AddFlag("--ignore-eos", ignore_end_, "Continue after the model's end token");
    sampler_.AddTo(options);
    engine_.AddTo(options);
    engine_.AddSpeculation(options);
    options.Heading(kOutputHeading);
    trace_.AddTo(options);
    options.Add("--logits", logits_, "Save the logits of each generated token").Type("FILE");
    options.AddFlag("--explain", explain_, "Print the memory plan and explain the first misses");
    AddJsonOption(options, json_);
  }

  Status CheckUsage() const override {
    const int inputs = int{prompt_.has_value()} + int{!file_.empty()} + int{!prompt_ids_.empty()};
    if (inputs > 1) return InvalidArgument("give one of --prompt, --file and --prompt-ids");
    if (chat_ && (inputs > 0 || !logits_.empty() || !json_.empty())) {
      return InvalidArgument("--chat takes no --prompt, --file, --prompt-ids, --logits or --json");
    }
    if (!chat_ && inputs == 0) {
      return InvalidArgument("nothing to run: give --prompt, --file, --prompt-ids or --chat");
    }
    if (std::ranges::find(stop_, "") != stop_.end()) {
      return InvalidArgument("--stop: an empty text stops nowhere, expected some");
    }
    if (!chat_ && !system_.empty()) return InvalidArgument("--system needs --chat");
    return sampler_.Sampler().status();
  }

  Status Run() override {
    TROUPE_ASSIGN_OR_RETURN(const Sampling sampling, sampler_.Sampler());
    TROUPE_ASSIGN_OR_RETURN(std::unique_ptr<Engine> opened, engine_.Open(0, trace_.scores()));
    TROUPE_ASSIGN_OR_RETURN(const std::unique_ptr<Model> model, ModelAccess::Of(std::move(opened)));
    Engine& engine = ModelAccess::EngineOf(*model);
    // Watches the engine, which outlives it; null without --trace.
    TROUPE_ASSIGN_OR_RETURN(const std::unique_ptr<TraceRecorder> recorder, trace_.Begin(engine));
    if (explain_) {
      PrintPlan(engine, sampling);
      ExplainMisses(engine);
    }
    if (!chat_) return AnswerOnce(*model, recorder.get(), sampling);
    TROUPE_RETURN_IF_ERROR(Chat(*model, Asking(sampling, kMostTokens), system_));
    return End(engine, recorder.get());
  }

 private:
  Request Asking(const Sampling& sampling, std::size_t tokens) const {
    return {.prompt = {},
            .max_tokens = tokens_.value_or(tokens),
            .sampling = sampling,
            .stop = stop_,
            .ignore_end = ignore_end_};
  }

  Status AnswerOnce(Model& model, TraceRecorder* recorder, const Sampling& sampling) const {
    Engine& engine = ModelAccess::EngineOf(model);
    TROUPE_ASSIGN_OR_RETURN(const std::vector<TokenId> prompt, Prompt(engine));
    if (prompt.size() > engine.plan().context()) {
      return Error(Code::kResourceExhausted,
                   "{}: the prompt has {} tokens, the context {}; --ctx asks for more",
                   file_.empty() ? "prompt" : file_, prompt.size(), engine.plan().context());
    }
    const InterruptGuard guard;
    if (ShowsText()) {
      fmt::print("{}", prompt_.value_or(""));
      std::fflush(stdout);
    }
    Request request = Asking(sampling, 128);
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
    if (explain_) ExplainSubstitution(engine);
    if (explain_ && answer != nullptr) ExplainSpeculation(engine, answer->usage);
    if (answer != nullptr) Remark("{}\n", FiguresLine(engine, *answer));
    RememberRun(engine, answer != nullptr ? SeenOf(engine, answer->usage) : TokensSeen());
    return trace_.Finish(recorder);
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

  // With the record on stdout the text is in it, and nothing else may be there.
  bool ShowsText() const { return json_ != "-"; }

  Result<std::vector<TokenId>> Prompt(const Engine& engine) const {
    const Tokenizer& tokenizer = engine.tokenizer();
    if (!prompt_ids_.empty()) return ParseTokenIds(prompt_ids_);
    if (file_.empty()) return tokenizer.Encode(prompt_.value_or(""));
    // A text that cannot fit is refused before it takes memory that no plan knows of.
    const std::size_t most = engine.plan().context() * tokenizer.longest_token();
    const Result<std::string> read = ReadTextFile(file_, most);
    if (read.status().code() == Code::kResourceExhausted) {
      return Status(read.status())
          .WithContext(fmt::format("a context of {} tokens is too short (--ctx asks for more)",
                                   engine.plan().context()));
    }
    TROUPE_RETURN_IF_ERROR(read.status());
    const std::string& text = *read;
    Result<std::vector<TokenId>> ids = tokenizer.Encode(text);
    if (!ids.ok()) return Status(ids.status()).WithContext(file_);
    return ids;
  }

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
  std::optional<std::string> prompt_;
  std::string file_, prompt_ids_, system_, logits_, json_;
  std::vector<std::string> stop_;
  std::optional<std::size_t> tokens_;
  bool chat_ = false;
  bool ignore_end_ = false;
  bool explain_ = false;
};

}  // namespace

std::unique_ptr<Command> MakeRunCommand() { return std::make_unique<RunCommand>(); }

}  // namespace troupe
