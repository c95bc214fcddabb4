#include "runtime/late_system.h"

#include <string>
#include <utility>

namespace troupe {
namespace {

std::string Joined(std::string first, const std::string& second) {
  if (first.empty()) return second;
  return second.empty() ? first : std::move(first) + "\n\n" + second;
}

}  // namespace

std::vector<Message> FoldLateSystem(std::vector<Message> messages) {
  std::vector<Message> folded;
  std::string ahead;  // said after an answer, for what follows
  for (Message& message : messages) {
    if (message.role == "system" && !folded.empty()) {
      std::string& text = folded.back().role == "assistant" ? ahead : folded.back().content;
      text = Joined(std::move(text), message.content);
      continue;
    }
    if (message.role == "assistant" && !ahead.empty()) {
      folded.push_back({.role = "user", .content = std::exchange(ahead, {})});
    }
    message.content = Joined(std::exchange(ahead, {}), message.content);
    folded.push_back(std::move(message));
  }
  if (!ahead.empty()) folded.push_back({.role = "user", .content = std::move(ahead)});
  return folded;
}

}  // namespace troupe
