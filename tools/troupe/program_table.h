// What every command takes, in one table: the program's options with each command as a subcommand.
#pragma once

#include <memory>
#include <vector>

#include "troupe/command.h"
#include "troupe/option_table.h"

namespace troupe {

struct ProgramTable {
  std::vector<std::unique_ptr<Command>> commands;  // to which the options are bound
  Options options;
};

ProgramTable MakeProgramTable();

}  // namespace troupe
