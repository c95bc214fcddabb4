#include "troupe/program_table.h"

#include "troupe/commands.h"

namespace troupe {

ProgramTable MakeProgramTable() {
  ProgramTable table{.commands = {}, .options = Options("troupe")};
  for (const CommandInfo& info : AllCommands()) {
    Options& options = table.options.AddSubcommand(info.name, info.summary, info.example);
    table.commands.push_back(info.make());
    table.commands.back()->AddOptions(options);
  }
  return table;
}

}  // namespace troupe
