// `troupe trace`: what a routing trace holds, and traces made from traces and from published
// recordings. Each of its verbs has a file of its own (trace_verbs.h). Playing a trace through
// caches is `troupe replay`'s.
#include "troupe/commands.h"
#include "troupe/trace_verbs.h"
#include "troupe/verb_table.h"

namespace troupe {
namespace {

class TraceCommand final : public Command {
 public:
  void AddOptions(Options& options) override {
    verbs_.Add(options, "info", "Show what traces contain and whether they are intact",
               MakeTraceInfo());
    verbs_.Add(options, "convert",
               "Convert a published recording (X.meta.json) or a trace to a trace",
               MakeTraceConvert());
    verbs_.Add(options, "cut", "Keep a part of a trace", MakeTraceCut());
    verbs_.Add(options, "merge", "Join traces of one model", MakeTraceMerge());
    verbs_.Add(options, "stats",
               "Show how evenly experts are used, which recur and which go together",
               MakeTraceStats());
  }

  Status CheckUsage() const override { return verbs_.Chosen().CheckUsage(); }
  Status Run() override { return verbs_.Chosen().Run(); }

 private:
  VerbTable verbs_;
};

}  // namespace

std::unique_ptr<Command> MakeTraceCommand() { return std::make_unique<TraceCommand>(); }

}  // namespace troupe
