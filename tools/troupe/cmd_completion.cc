// `troupe completion`: a script by which a shell completes troupe's command lines.
#include <fmt/core.h>

#include <string>

#include "troupe/commands.h"
#include "troupe/completion.h"
#include "troupe/program_table.h"

namespace troupe {
namespace {

class CompletionCommand final : public Command {
 public:
  void AddOptions(Options& options) override {
    options.Add("SHELL", shell_, "The shell to print it for")
        .Required()
        .OneOf({"bash", "zsh", "fish"})
        .Type("NAME");
  }

  Status Run() override {
    const ProgramTable program = MakeProgramTable();
    const auto script = shell_ == "bash"  ? BashCompletion
                        : shell_ == "zsh" ? ZshCompletion
                                          : FishCompletion;
    fmt::print("{}", script(program.options));
    return OkStatus();
  }

 private:
  std::string shell_;
};

}  // namespace

std::unique_ptr<Command> MakeCompletionCommand() { return std::make_unique<CompletionCommand>(); }

}  // namespace troupe
