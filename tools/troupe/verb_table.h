// The verbs of a command that has some, as `troupe trace info`: each is a command of its own.
#pragma once

#include <memory>
#include <utility>
#include <vector>

#include "base/check.h"
#include "troupe/command.h"
#include "troupe/option_table.h"

namespace troupe {

class VerbTable {
 public:
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

 private:
  struct Verb {
    const Options* options;
    std::unique_ptr<Command> command;
  };

  std::vector<Verb> verbs_;
};

}  // namespace troupe
