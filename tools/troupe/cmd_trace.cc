// `troupe trace`: what a routing trace holds, and traces made from traces and from published
// recordings. Each of its verbs has a file of its own (trace_verbs.h). Playing a trace through
// caches is `troupe replay`'s.
#include <vector>

#include "troupe/commands.h"
#include "troupe/trace_verbs.h"

namespace troupe {
namespace {

class TraceCommand final : public Command {
 public:
  void AddOptions(Options& options) override {
    Add(options, "info", "Show what traces contain and whether they are intact", MakeTraceInfo());
    Add(options, "convert", "Convert a published recording (X.meta.json) or a trace to a trace",
        MakeTraceConvert());
    Add(options, "cut", "Keep a part of a trace", MakeTraceCut());
    Add(options, "merge", "Join traces of one model", MakeTraceMerge());
    Add(options, "stats", "Show how evenly experts are used, which recur and which go together",
        MakeTraceStats());
  }

  Status CheckUsage() const override { return Chosen().CheckUsage(); }
  Status Run() override { return Chosen().Run(); }

 private:
  struct Verb {
    const Options* options;
    std::unique_ptr<Command> command;
  };

  void Add(Options& options, const char* name, const char* summary,
           std::unique_ptr<Command> command) {
    Options& sub = options.AddSubcommand(name, summary);
    command->AddOptions(sub);
    verbs_.push_back({&sub, std::move(command)});
  }

  // The parser has required one.
  Command& Chosen() const {
    for (const Verb& verb : verbs_) {
      if (verb.options->chosen()) return *verb.command;
    }
    TROUPE_CHECK(false);
    return *verbs_.front().command;
  }

  std::vector<Verb> verbs_;
};

}  // namespace

std::unique_ptr<Command> MakeTraceCommand() { return std::make_unique<TraceCommand>(); }

}  // namespace troupe
