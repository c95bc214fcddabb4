// Who may ask: keys, compared in a time that says nothing of them, and pages of which hosts and
// origins. Pure.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "server/http/http_message.h"

namespace troupe {

struct AccessRules {
  std::vector<std::string> keys;     // none: everybody may ask
  std::vector<std::string> origins;  // none: no page of another origin; "*": all
  // Only this machine is to ask, and without a key: then a page of another host that a browser here
  // shows must not, though its name may lead here.
  bool local_only = false;
  std::vector<std::string> hosts;  // names that are this machine's as well
};

// "Authorization: Bearer KEY", or "x-api-key: KEY" as Anthropic's clients send it; empty: none.
std::string_view KeyOf(const HttpRequest& request);
bool MayAsk(const AccessRules& rules, const HttpRequest& request);
// Takes the key out of a request where none are asked for: nobody has compared it with any, so
// clients must not be told apart by it.
void DropUncheckedKey(const AccessRules& rules, HttpRequest& request);
// Whether it may have the server do something beyond answering: by a key, or from a program on the
// server's own machine. Pages have an origin, and any may post to a server of the local network.
bool MayOrder(const AccessRules& rules, const HttpRequest& request);
// What lets a page's scripts read the response; none if its origin may not.
HttpHeaders CrossOriginHeaders(const AccessRules& rules, const HttpRequest& request);

// Why a request has no business here, and which option would let it in: it comes from a page of
// another origin than the server's own, those allowed and those of desktop programs, or was sent to
// a host that is not this machine. Empty: it may go on, as always unless local_only.
std::string WhyForeign(const AccessRules& rules, const HttpRequest& request);

// "app://obsidian.md", "vscode-webview://…": pages that a program on this machine shows and no site
// can be, as no browser gives a site such a scheme.
bool IsOfDesktopProgram(std::string_view origin);

// "127.0.0.1", "::1", "localhost": who listens there is asked from its own machine alone.
bool IsLoopback(std::string_view host);

// As long for any guess of the same length.
bool SameSecret(std::string_view a, std::string_view b);

}  // namespace troupe
