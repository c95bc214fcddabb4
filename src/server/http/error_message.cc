#include "server/http/error_message.h"

#include <algorithm>
#include <utility>

namespace troupe {

std::optional<std::string> ErrorMessageOf(const Json& body) {
  const Json* error = body.Find("error");
  if (error == nullptr) return std::nullopt;
  if (error->IsString()) return error->AsString();
  const Json* message = error->Find("message");
  if (message != nullptr && message->IsString()) return message->AsString();
  return error->Dump();
}

std::string ErrorMessageIn(std::string_view body) {
  if (const std::optional<Json> json = Json::Parse(body)) {
    if (std::optional<std::string> message = ErrorMessageOf(*json)) return *std::move(message);
  }
  return std::string(body.substr(0, std::min<std::size_t>(body.find('\n'), 200)));
}

}  // namespace troupe
