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
  void AddOptions(CLI::App& app) override {
    app.require_subcommand(1);
    app.set_help_all_flag("--help-all", "The options of all of them");
    Add(app, "info", "Show what traces hold, and whether they are whole", MakeTraceInfo());
    Add(app, "convert", "Make a trace of a published recording (X.meta.json), or of a trace again",
        MakeTraceConvert());
    Add(app, "cut", "Keep a part of a trace", MakeTraceCut());
    Add(app, "merge", "Put traces of one model one after the other", MakeTraceMerge());
    Add(app, "stats", "How evenly experts are used, what comes back, what goes together",
        MakeTraceStats());
  }

  Status CheckUsage() const override { return Chosen().CheckUsage(); }
  Status Run() override { return Chosen().Run(); }

 private:
  struct Verb {
    CLI::App* app;
    std::unique_ptr<Command> command;
  };

  void Add(CLI::App& app, const char* name, const char* summary, std::unique_ptr<Command> command) {
    CLI::App* sub = app.add_subcommand(name, summary);
    command->AddOptions(*sub);
    verbs_.push_back({sub, std::move(command)});
  }

  // The parser has required one.
  Command& Chosen() const {
    for (const Verb& verb : verbs_) {
      if (verb.app->parsed()) return *verb.command;
    }
    TROUPE_CHECK(false);
    return *verbs_.front().command;
  }

  std::vector<Verb> verbs_;
};

}  // namespace

std::unique_ptr<Command> MakeTraceCommand() { return std::make_unique<TraceCommand>(); }

}  // namespace troupe
