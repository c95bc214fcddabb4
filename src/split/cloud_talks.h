// Requests to the cloud under way, of which those that hear nothing for long are given up. The
// client has a limit for all of its requests; this one is for those that a cloud which is well
// answers at once. On the loop's thread.
#pragma once

#include <functional>
#include <list>
#include <memory>

#include "base/clock.h"
#include "server/http/http_client.h"

namespace troupe {

class CloudTalks {
 public:
  // `silence`: the longest, of talks that are not patient. Both must outlive it.
  CloudTalks(HttpClient& client, const Clock& clock, Nanos silence)
      : client_(client), clock_(clock), silence_(silence) {}

  // Must outlive what it has started, or that be cancelled. A patient one waits as the client does.
  HttpClient::Cancel Start(const HttpUrl& url, const HttpRequest& request, HttpListener listener,
                           bool is_patient = false);
  // Ends those that were silent for too long with kDeadlineExceeded. The next ones have connections
  // of their own: what was idle beside a dead one would be as silent.
  void OnTime();

 private:
  struct Talk {
    HttpUrl url;
    Nanos heard = 0;
    bool is_over = false;
    HttpClient::Cancel cancel;
    std::function<void(const Status& status)> on_end;
  };

  HttpClient& client_;
  const Clock& clock_;
  const Nanos silence_;
  std::list<std::weak_ptr<Talk>> impatient_;
};

}  // namespace troupe
