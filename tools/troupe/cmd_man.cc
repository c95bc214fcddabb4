// `troupe man`: the manual page, for `man -l -` or a package.
#include <fmt/core.h>
#include <troupe/version.h>

#include "troupe/commands.h"
#include "troupe/man_page.h"
#include "troupe/program_table.h"

namespace troupe {
namespace {

class ManCommand final : public Command {
 public:
  void AddOptions(Options&) override {}

  Status Run() override {
    const ProgramTable program = MakeProgramTable();
    fmt::print("{}", ManPage(program.options, Version()));
    return OkStatus();
  }
};

}  // namespace

std::unique_ptr<Command> MakeManCommand() { return std::make_unique<ManCommand>(); }

}  // namespace troupe
