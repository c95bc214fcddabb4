// The verbs of `troupe trace`: commands under a command, one file each (cmd_trace_NAME.cc).
#pragma once

#include <memory>

#include "troupe/command.h"

namespace troupe {

std::unique_ptr<Command> MakeTraceInfo();
std::unique_ptr<Command> MakeTraceConvert();
std::unique_ptr<Command> MakeTraceCut();
std::unique_ptr<Command> MakeTraceMerge();
std::unique_ptr<Command> MakeTraceStats();

}  // namespace troupe
