// All subcommands, in the order of `troupe --help`.
#pragma once

#include <span>
#include <string>
#include <string_view>

#include "troupe/command.h"

namespace troupe {

std::span<const CommandInfo> AllCommands();
const CommandInfo* FindCommand(std::string_view name);  // null if there is none
std::string CommandNames();                             // "run, inspect, …"

// One a cmd_NAME.cc.
std::unique_ptr<Command> MakeBenchCommand();
std::unique_ptr<Command> MakeBenchServerCommand();
std::unique_ptr<Command> MakeCompletionCommand();
std::unique_ptr<Command> MakeManCommand();
std::unique_ptr<Command> MakeCalibrateCommand();
std::unique_ptr<Command> MakeDeviceCommand();
std::unique_ptr<Command> MakeEvalCommand();
std::unique_ptr<Command> MakeInspectCommand();
std::unique_ptr<Command> MakeListCommand();
std::unique_ptr<Command> MakePackCommand();
std::unique_ptr<Command> MakePlanCommand();
std::unique_ptr<Command> MakeProbeCommand();
std::unique_ptr<Command> MakePlaceCommand();
std::unique_ptr<Command> MakePsCommand();
std::unique_ptr<Command> MakeClusterCommand();
std::unique_ptr<Command> MakePullCommand();
std::unique_ptr<Command> MakeQuantizeCommand();
std::unique_ptr<Command> MakeReplayCommand();
std::unique_ptr<Command> MakeRmCommand();
std::unique_ptr<Command> MakeRunCommand();
std::unique_ptr<Command> MakeServeCommand();
std::unique_ptr<Command> MakeSimulateCommand();
std::unique_ptr<Command> MakeSimulateServerCommand();
std::unique_ptr<Command> MakeSimulateEndsCommand();
std::unique_ptr<Command> MakeSplitCommand();
std::unique_ptr<Command> MakeMergeCommand();
std::unique_ptr<Command> MakeSynthCommand();
std::unique_ptr<Command> MakeTokenizeCommand();
std::unique_ptr<Command> MakeTraceCommand();

}  // namespace troupe
