#include "server/request_body.h"

#include "server/http/http_reply.h"

namespace troupe {

Mutex& BodyReading(std::size_t bytes) {
  static Mutex small, large;
  return bytes <= kSmallBodyBytes ? small : large;
}

std::size_t CountJsonValues(std::string_view text) {
  std::size_t values = 1;
  bool in_string = false;
  for (std::size_t i = 0; i < text.size(); ++i) {
    const char c = text[i];
    if (in_string) {
      if (c == '\\') ++i;
      if (c == '"') in_string = false;
      continue;
    }
    if (c == '"') in_string = true;
    if (c == ',' || c == '[' || c == '{') ++values;
  }
  return values;
}

}  // namespace troupe
