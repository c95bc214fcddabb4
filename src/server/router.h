// Finds the handler of a request by its path and method, after asking whether the client may ask at
// all. What is said of every response, whoever gave it, is said here. Thread-safe once all handlers
// are added.
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>

#include "base/mutex.h"
#include "server/access_rules.h"
#include "server/http/http_reply.h"

namespace troupe {

class Router {
 public:
  // kLoading: until Open, each request is answered that the model is being loaded, and handlers may
  // be added meanwhile.
  enum class Start { kOpen, kLoading };
  explicit Router(AccessRules rules, Start start = Start::kOpen);
  // All handlers are added.
  void Open() { open_ = true; }

  // For requests that come from now on.
  void set_rules(AccessRules rules);

  // Anybody may ask for what is open: that the server lives, and the page, which holds nothing.
  // Orders without a key come from programs on this machine alone.
  enum class Door { kOpen, kKeyed, kOrder };
  // A path that ends in "/*" stands for all that go on there, but for those that are added.
  void Add(std::string method, std::string path, Door door, HttpHandler handler);

  // What a request is answered that has no handler, or may not ask; its body does not matter. With
  // what lets a page read it.
  std::optional<HttpResponse> Refusal(const HttpRequest& request) const;
  // Calls the handler, or answers with the refusal.
  void Serve(HttpRequest request, HttpReplyPtr reply) const;
  // An error of the transport, in the shape of the API that the path belongs to. With what lets a
  // page read it.
  HttpResponse TransportError(int status, const std::string& message,
                              const HttpRequest& head) const;

  // Told of each request that no handler sees: its path as it was added, empty if it was not,
  // and the status of its response. From any thread.
  void WhenRefused(std::function<void(const std::string& path, int status)> call) {
    when_refused_ = std::move(call);
  }

 private:
  struct Target {
    Door door = Door::kKeyed;
    HttpHandler handler;
  };
  using Methods = std::map<std::string, Target>;
  using Targets = std::map<std::string, Methods>;  // by path

  std::shared_ptr<const AccessRules> rules() const;
  std::optional<HttpResponse> RefusalOf(const AccessRules& rules, const HttpRequest& request) const;
  static HttpResponse Loading(const HttpRequest& request);
  Targets::const_iterator Find(const std::string& asked) const;
  // By which a client and the log know the request: the client's own x-request-id, or a new one.
  HttpHeaders NamesOf(const HttpRequest& request) const;
  static HttpResponse NoSuchMethod(const HttpRequest& request, const Methods& methods);
  void TellRefused(const std::string& path, int status) const;

  mutable Mutex mu_;
  std::shared_ptr<const AccessRules> rules_ TROUPE_GUARDED_BY(mu_);
  std::atomic<bool> open_;
  // From the moment it is open they do not change.
  Targets targets_;
  const std::int64_t started_;  // milliseconds since 1970
  mutable std::atomic<std::uint64_t> requests_ = 0;
  std::function<void(const std::string& path, int status)> when_refused_;
};

}  // namespace troupe
