#include "troupe/talk_window.h"

#include <algorithm>

namespace troupe {

std::size_t DropOldestTurn(std::vector<Message>& messages) {
  const auto is_user = [](const Message& message) { return message.role == "user"; };
  const auto first = std::ranges::find_if(
      messages, [](const Message& message) { return message.role != "system"; });
  if (first == messages.end()) return 0;
  const auto next = std::find_if(first + 1, messages.end(), is_user);
  if (next == messages.end()) return 0;
  const auto dropped = static_cast<std::size_t>(next - first);
  messages.erase(first, next);
  return dropped;
}

}  // namespace troupe
