// What the system says amid a talk, for templates that know a message of its own at the beginning
// alone: some refuse another one, some leave it out, some write all of them at the beginning, where
// each new one makes the whole prompt another. Pure.
#pragma once

#include <troupe/request.h>

#include <vector>

namespace troupe {

// Joins what the system says at the beginning. What it says later ends the message before it, of
// the user's or a tool's; after an answer it begins the message that follows, or is the user's.
std::vector<Message> FoldLateSystem(std::vector<Message> messages);

}  // namespace troupe
