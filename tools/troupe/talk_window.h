// What a talk forgets when it no longer fits into the context: its oldest turns. Pure.
#pragma once

#include <troupe/request.h>

#include <cstddef>
#include <vector>

namespace troupe {

// Removes the first message of a user with all that follows up to the user's next one. The system's
// stays, and so does the last message. How many were removed; 0: none could be.
std::size_t DropOldestTurn(std::vector<Message>& messages);

}  // namespace troupe
