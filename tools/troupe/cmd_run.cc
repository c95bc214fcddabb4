// `troupe run`: text, a file or token ids in, text out as it comes, a line of figures at the end.
#include <algorithm>
#include <cstdio>
#include <optional>
#include <string>

#include "lab/logits_file.h"
#include "runtime/generator.h"
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
    GenerateOptions options;
    options.max_tokens = tokens_.value_or(chat_ ? kMostTokens : 128);
    options.stop = stop_;
    options.ignore_end = ignore_end_;
    TROUPE_ASSIGN_OR_RETURN(options.sampler, sampler_.Sampler());
    TROUPE_ASSIGN_OR_RETURN(const std::unique_ptr<Engine> engine, engine_.Open(0, trace_.scores()));
    TROUPE_ASSIGN_OR_RETURN(const std::unique_ptr<TraceRecorder> recorder, trace_.Begin(*engine));
    if (explain_) {
      PrintPlan(*engine, options);
      ExplainMisses(*engine);
    }
    if (chat_) {
      TROUPE_RETURN_IF_ERROR(Chat(*engine, options, system_));
      return End(*engine, recorder.get());
    }

    TROUPE_ASSIGN_OR_RETURN(const std::vector<TokenId> prompt, Prompt(*engine));
    TROUPE_ASSIGN_OR_RETURN(Session session, Session::Create(*engine));
    if (prompt.size() > session.room()) {
      return Error(Code::kResourceExhausted,
                   "{}: the prompt has {} tokens, the context {}; --ctx asks for more",
                   file_.empty() ? "prompt" : file_, prompt.size(), session.room());
    }
    const InterruptGuard guard;
    if (ShowsText()) {
      fmt::print("{}", prompt_.value_or(""));
      std::fflush(stdout);
    }
    TROUPE_ASSIGN_OR_RETURN(const GenerateResult result,
                            GenerateAndStream(*engine, session, prompt, options));
    if (ShowsText()) fmt::print("\n");
    std::fflush(stdout);
    TROUPE_RETURN_IF_ERROR(End(*engine, recorder.get(), &result));
    if (!json_.empty()) {
      TROUPE_RETURN_IF_ERROR(WriteJson(RunRecord(*engine, prompt, options, result), json_));
    }
    return InterruptGuard::interrupted() ? Error(Code::kCancelled, "interrupted") : OkStatus();
  }

 private:
  // What an answer and a talk have in common at their end. A talk has told its figures, of each
  // answer by itself.
  Status End(const Engine& engine, TraceRecorder* recorder,
             const GenerateResult* result = nullptr) const {
    if (explain_) ExplainSubstitution(engine);
    if (result != nullptr) Remark("{}\n", FiguresLine(engine, *result));
    RememberRun(engine, result != nullptr ? SeenOf(engine, *result) : TokensSeen());
    return trace_.Finish(recorder);
  }

  // Where experts are left out or replaced by smaller copies it is not known what was computed.
  static TokensSeen SeenOf(const Engine& engine, const GenerateResult& result) {
    const ExpertUsage& experts = result.decode_experts;
    if (experts.dropped > 0 || experts.low_copies > 0) return {};
    return {.tokens = result.decode_steps,
            .seconds = result.decode_pass_seconds,
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

  Result<GenerateResult> GenerateAndStream(Engine& engine, Session& session,
                                           const std::vector<TokenId>& prompt,
                                           const GenerateOptions& options) const {
    GenerateHooks hooks;
    hooks.stop = InterruptGuard::interrupted;
    hooks.on_text = [this](std::string_view piece) {
      if (!ShowsText()) return true;
      return std::fwrite(piece.data(), 1, piece.size(), stdout) == piece.size() &&
             std::fflush(stdout) == 0;
    };
    if (logits_.empty()) {
      return Generate(session, engine.tokenizer(), prompt, options, hooks);
    }
    TROUPE_ASSIGN_OR_RETURN(LogitsWriter writer,
                            LogitsWriter::Create(logits_, engine.config().vocabulary));
    hooks.on_logits = [&writer](TokenId token, std::span<const float> logits) {
      return writer.Append(token, logits);
    };
    TROUPE_ASSIGN_OR_RETURN(const GenerateResult result,
                            Generate(session, engine.tokenizer(), prompt, options, hooks));
    TROUPE_RETURN_IF_ERROR(writer.Finish());
    return result;
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
