// One run of `troupe serve`: listens, opens the model, goes over to another model or other settings
// at SIGHUP, and ends at SIGTERM (docs/design/reload.md).
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "base/mutex.h"
#include "base/status.h"
#include "server/http/http_server.h"
#include "server/router.h"
#include "server/service.h"
#include "troupe/serve_flags.h"
#include "troupe/serve_models.h"
#include "troupe/serve_signals.h"
#include "troupe/serving_file.h"

namespace troupe {

class ServeRun {
 public:
  explicit ServeRun(std::vector<std::string> arguments) : arguments_(std::move(arguments)) {}

  // Returns once the server was told to end, or could not go on, and has ended.
  Status Run();

 private:
  // What the server is told, read and found good.
  struct Settings {
    std::unique_ptr<const ServeFlags> flags;
    AccessRules access;
    // Of those that follow others:
    ServeChanges changes = {};
    std::optional<std::unique_ptr<AccessLog>> log = {};  // another one, or none: null
    std::optional<HttpCertificate> certificate = {};     // another one
  };
  enum class Next { kServe, kEnd };

  Result<Settings> ReadSettings() const;
  // Also judges whether they can follow those of now.
  Result<Settings> ReadNext() const;
  // Before there is a model: clients are told to come again.
  Status Listen();
  // Answers them from now on.
  void OpenDoor();
  // For `troupe ps`.
  void Announce();

  // Until it is told to end.
  Status Obey();
  Result<Next> Reload();
  Result<Next> ReloadModel(Settings next);
  // What must not wait for requests under way, nor for a model that opens: a key that was
  // withdrawn, say.
  void AdoptDoor(const Settings& next);
  // The same where a reload is refused for something else: keys and a certificate that are good.
  // Says what was taken; empty: nothing was, as nothing had changed.
  std::string AdoptWhatIsGood();
  // Goes on with the model that is open.
  void Adopt(Settings next);
  void TakeOver(Settings next);
  // Whether nobody uses the model any more; no: the server is to end.
  bool WaitUntilUnused(Settings& next);
  void StopWaiting(Settings& next);
  // `undone`: the settings of now once more.
  void Reopen(bool undone);
  Status Lose(const Status& why);
  // As if it had been told to end, but for the outcome. Any thread.
  void Fail(const Status& why);

  Status End();
  void EndRequests();
  // Whether prefixes may be written: until a signal to end comes after the one that began the end.
  bool MayWriteOn();

  const std::vector<std::string> arguments_;
  const ServeSignals signals_;
  Settings settings_;
  ServedModel served_;
  AccessLogSwitch log_;  // before the models, whose nodes ask it
  // Behind what it serves, as a node of a cluster ends before its model.
  ServeModels models_{[this] { return !signals_.EndIsPending(); },
                      [this](const Status& why) { Fail(why); }, [this] { return log_.trouble(); }};
  bool ending_ = false;  // the server was told to end
  Mutex fail_mu_;
  Status failure_ TROUPE_GUARDED_BY(fail_mu_);
  // In the order in which they use what is above.
  std::optional<Service> service_;
  std::optional<Router> router_;
  std::unique_ptr<HttpServer> server_;
  std::optional<ServingFile> serving_file_;
};

}  // namespace troupe
