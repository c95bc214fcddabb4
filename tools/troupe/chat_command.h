// The lines of a talk that are not for the model: /help, /new, /system, /save, /load, /exit, and
// the names that other programs have for them.
#pragma once

#include <optional>
#include <string>
#include <string_view>

namespace troupe {

struct ChatCommand {
  enum class Kind { kHelp, kNew, kSystem, kSave, kLoad, kExit, kUnknown };
  Kind kind = Kind::kUnknown;
  std::string argument;  // of kUnknown: what was typed, and what may have been meant
};

// Nothing: the line is a message. One that begins with two slashes is a message that begins with
// one; a path such as /etc/hosts is a message, too.
std::optional<ChatCommand> ParseChatCommand(std::string_view line);

// What Tab adds to the beginning of a command: the rest of the one that it is, with a blank where
// an argument follows, or what all those that it may become have in common. Nothing: it begins
// none.
std::optional<std::string> RestOfCommand(std::string_view beginning);

std::string_view ChatHelp();

}  // namespace troupe
