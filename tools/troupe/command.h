// What a subcommand of `troupe` is. Each has a file of its own, cmd_NAME.cc, with a class derived
// from Command and a function that makes one; commands.cc lists those functions. main.cc turns what
// a command returns into one line on stderr and an exit code, so a command never exits by itself.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "base/status.h"
#include "troupe/option_table.h"

namespace troupe {

class Command {
 public:
  virtual ~Command() = default;

  // Binds options to members of this, which lives until Run has returned. A value that can be
  // judged by itself gets a check (option_table.h): a failed check is a usage error.
  virtual void AddOptions(Options& options) = 0;

  // The command line as it was given, for a command that reads it again.
  virtual void SetArguments(std::vector<std::string> /*arguments*/) {}

  // What is wrong with the options taken together; a failure is a usage error, too (exit code 2).
  virtual Status CheckUsage() const { return OkStatus(); }

  // The work; a failure has exit code 1.
  virtual Status Run() = 0;
};

struct CommandInfo {
  const char* name;
  const char* summary;  // one line, for the list of commands and the head of --help
  const char* example;  // one line or several, shown at the end of --help
  std::unique_ptr<Command> (*make)();
};

}  // namespace troupe
