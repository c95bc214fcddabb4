// Who may ask: keys, compared in a time that says nothing of them, and the origins of pages whose
// scripts may read answers. Pure.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "server/http/http_message.h"

namespace troupe {

struct AccessRules {
  std::vector<std::string> keys;     // none: everybody may ask
  std::vector<std::string> origins;  // none: no page of another origin; "*": all
};

// "Authorization: Bearer KEY", or "x-api-key: KEY" as Anthropic's clients send it.
bool MayAsk(const AccessRules& rules, const HttpRequest& request);
// What lets a page's scripts read the response; none if its origin may not.
HttpHeaders CrossOriginHeaders(const AccessRules& rules, const HttpRequest& request);

// As long for any guess of the same length.
bool SameSecret(std::string_view a, std::string_view b);

}  // namespace troupe
