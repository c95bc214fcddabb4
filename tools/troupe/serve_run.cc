#include "troupe/serve_run.h"

#include <algorithm>
#include <chrono>
#include <utility>

#include "api/model_access.h"
#include "base/clock.h"
#include "machine/open_files.h"
#include "machine/process_memory.h"
#include "troupe/remark.h"

namespace troupe {
namespace {

using namespace std::chrono_literals;

// How often those who wait look for a signal.
constexpr auto kSignalLook = 50ms;
// How often the system gets back what answers have left in the allocator's heaps, each thread's its
// own: those keep what they needed at most.
constexpr auto kTidyEvery = 1min;
// Files that a server may have open beside its connections: models, logs, the nodes of a cluster.
constexpr std::size_t kOtherFiles = 256;

// Whoever is one too many would wait in the system without a word.
void AllowConnections(std::size_t connections) {
  const std::size_t files = AllowOpenFiles(connections + kOtherFiles);
  if (files >= connections + kOtherFiles) return;
  Remark("only {} files may be open, which leaves fewer than {} connections: raise `ulimit -n`\n",
         files, connections);
}

// What whoever starts a second server meets first, and its way out.
Status WithAnotherPort(const Status& why) {
  if (!why.message().ends_with("already in use")) return why;
  return Error(why.code(), "{}; --port chooses another", why.message());
}

}  // namespace

Status ServeRun::Run() {
  TROUPE_ASSIGN_OR_RETURN(settings_, ReadSettings());
  // Before minutes of loading.
  TROUPE_RETURN_IF_ERROR(settings_.flags->CheckFiles());
  TROUPE_ASSIGN_OR_RETURN(std::unique_ptr<AccessLog> log, settings_.flags->OpenLog());
  log_.Set(std::move(log));
  TROUPE_RETURN_IF_ERROR(Listen());
  Result<ServedModel> opened = models_.Open(*settings_.flags);
  if (!opened.ok()) {
    if (!signals_.EndIsPending()) return opened.status();
    Remark("ending: {} is not loaded\n", settings_.flags->model());
    return OkStatus();
  }
  served_ = *std::move(opened);
  OpenDoor();
  Announce();
  Remark("serving {} at {}\n", settings_.flags->model(), server_->Address());
  TROUPE_RETURN_IF_ERROR(Obey());
  TROUPE_RETURN_IF_ERROR(End());
  const MutexLock lock(fail_mu_);
  return failure_;
}

Status ServeRun::Obey() {
  while (true) {
    const std::optional<ServeSignals::Order> order = signals_.WaitFor(kTidyEvery);
    if (order == ServeSignals::Order::kEnd) return OkStatus();
    if (order == ServeSignals::Order::kReload) {
      TROUPE_ASSIGN_OR_RETURN(const Next next, Reload());
      if (next == Next::kEnd) return OkStatus();
    } else {
      service_->CountReturned(ReturnFreeMemory());
    }
  }
}

void ServeRun::Fail(const Status& why) {
  {
    const MutexLock lock(fail_mu_);
    failure_ = why;
  }
  signals_.End();
}

Result<ServeRun::Settings> ServeRun::ReadSettings() const {
  TROUPE_ASSIGN_OR_RETURN(std::unique_ptr<const ServeFlags> flags, ServeFlags::Read(arguments_));
  TROUPE_ASSIGN_OR_RETURN(AccessRules access, flags->Access());
  return Settings{.flags = std::move(flags), .access = std::move(access)};
}

Result<ServeRun::Settings> ServeRun::ReadNext() const {
  TROUPE_ASSIGN_OR_RETURN(Settings next, ReadSettings());
  const ServeFlags& flags = *next.flags;
  TROUPE_RETURN_IF_ERROR(flags.CheckFollows(*settings_.flags));
  TROUPE_RETURN_IF_ERROR(flags.Service().status());
  next.changes = ChangesBetween(settings_.flags->file_options(), flags.file_options());
  std::vector<std::string>& names = next.changes.names;
  if (next.access.keys != settings_.access.keys && !next.changes.Has("api-keys")) {
    names.push_back("the keys in the file of api-keys");
  }
  TROUPE_ASSIGN_OR_RETURN(const std::optional<HttpCertificate> certificate, flags.Certificate());
  if (certificate && !certificate->SameAs(server_->certificate().value())) {
    next.certificate = certificate;
    if (!next.changes.Has("tls-certificate")) names.push_back("the file of tls-certificate");
  }
  for (std::string& path : models_.ChangedFiles()) {
    next.changes.needs_model = true;
    if (!next.changes.Has("model")) names.push_back(std::move(path));
  }
  if (next.changes.needs_model) TROUPE_RETURN_IF_ERROR(models_.Check(flags));
  if (next.changes.Has("access-log") || next.changes.Has("log-format")) {
    TROUPE_ASSIGN_OR_RETURN(next.log, flags.OpenLog());
  }
  return next;
}

Status ServeRun::Listen() {
  router_.emplace(settings_.access, Router::Start::kLoading);
  HttpServerOptions options = settings_.flags->Http();
  AllowConnections(options.limits.connections);
  Result<std::unique_ptr<HttpServer>> server = HttpServer::Listen(
      options, {.handle =
                    [this](HttpRequest request, HttpReplyPtr reply) {
                      router_->Serve(std::move(request), std::move(reply));
                    },
                .refusal = [this](const HttpRequest& head) { return router_->Refusal(head); },
                .error =
                    [this](int status, const std::string& message, const HttpRequest& head) {
                      return router_->TransportError(status, message, head);
                    },
                .log = [this](const HttpEnded& ended) { log_.Add(ended); }});
  if (!server.ok()) return WithAnotherPort(server.status());
  server_ = *std::move(server);
  return OkStatus();
}

void ServeRun::OpenDoor() {
  service_.emplace(served_);
  service_->AddTo(*router_);
  service_->set_log(&log_);
  service_->set_server(server_.get());
  server_->set_body_bytes(BodyBytes(served_, settings_.flags->most_body()));
  router_->Open();
}

void ServeRun::Announce() {
  serving_file_.reset();
  serving_file_.emplace(ServingFile::Announce({.model = settings_.flags->model(),
                                               .address = server_->Address(),
                                               .budget = served_.model->plan().budget}));
}

Result<ServeRun::Next> ServeRun::Reload() {
  Result<Settings> read = ReadNext();
  if (!read.ok()) {
    Remark("not reloaded: {}{}\n", read.status().message(), AdoptWhatIsGood());
    service_->CountReload(ReloadEnd::kRefused);
    return Next::kServe;
  }
  Settings next = *std::move(read);
  AdoptDoor(next);
  if (next.changes.needs_model) return ReloadModel(std::move(next));
  Adopt(std::move(next));
  return Next::kServe;
}

void ServeRun::AdoptDoor(const Settings& next) {
  router_->set_rules(next.access);
  settings_.access = next.access;
  if (next.certificate) server_->set_certificate(*next.certificate);
}

std::string ServeRun::AdoptWhatIsGood() {
  const auto read = ServeFlags::Read(arguments_);
  const ServeFlags& flags = read.ok() ? **read : *settings_.flags;
  std::string taken;
  const Result<AccessRules> access = flags.Access();
  // No keys in place of some would open the door: not by mistake.
  if (access.ok() && !access->keys.empty() && access->keys != settings_.access.keys) {
    settings_.access.keys = access->keys;
    settings_.access.local_only = false;
    router_->set_rules(settings_.access);
    taken += "; the keys count all the same";
  }
  const std::optional<HttpCertificate> shown = server_->certificate();
  const Result<std::optional<HttpCertificate>> certificate = flags.Certificate();
  if (shown && certificate.ok() && *certificate && !(*certificate)->SameAs(*shown)) {
    server_->set_certificate(**certificate);
    taken += "; the certificate counts all the same";
  }
  return taken;
}

void ServeRun::Adopt(Settings next) {
  const std::string changed = next.changes.Text();
  TakeOver(std::move(next));
  service_->Adopt(settings_.flags->Service().value());  // ReadNext has found it good
  ModelAccess::SetLimits(*served_.model, settings_.flags->ForRequests());
  service_->CountReload(ReloadEnd::kDone);
  Remark("reloaded: {} changed; the model stays open\n", changed);
}

void ServeRun::TakeOver(Settings next) {
  if (next.log) log_.Set(*std::move(next.log));
  next.log.reset();
  settings_ = std::move(next);
}

Result<ServeRun::Next> ServeRun::ReloadModel(Settings next) {
  Remark("reloading: {} changed; requests under way end first\n", next.changes.Text());
  const ServeFlags& before = *settings_.flags;
  service_->Park(
      {.places = std::min(before.most_requests(), next.flags->most_requests()),
       .retry_seconds = std::max(1.0, ModelAccess::EngineOf(*served_.model).load_seconds())},
      std::max(before.parallel(), next.flags->parallel()));
  if (!WaitUntilUnused(next)) return Next::kEnd;
  models_.Close(served_, [this] { return MayWriteOn(); });
  if (ending_) return Next::kEnd;
  Result<ServedModel> opened = models_.Open(*next.flags);
  if (opened.ok()) {
    served_ = *std::move(opened);
    TakeOver(std::move(next));
    Reopen(/*undone=*/false);
    return Next::kServe;
  }
  if (signals_.EndsWithin(0ms)) return Next::kEnd;
  Remark("not reloaded: {}; opening {} again\n", opened.status().message(),
         settings_.flags->model());
  opened = models_.Open(*settings_.flags);
  if (!opened.ok()) {
    if (signals_.EndsWithin(0ms)) return Next::kEnd;
    return Lose(opened.status());
  }
  served_ = *std::move(opened);
  Reopen(/*undone=*/true);
  return Next::kServe;
}

bool ServeRun::WaitUntilUnused(Settings& next) {
  while (!service_->WaitUntilUnused(kSignalLook)) {
    const std::optional<ServeSignals::Order> order = signals_.Take();
    if (order == ServeSignals::Order::kEnd) return false;
    if (order == ServeSignals::Order::kReload) StopWaiting(next);
  }
  return true;
}

// The second SIGHUP.
void ServeRun::StopWaiting(Settings& next) {
  Remark("reloading now: requests under way are cancelled\n");
  served_.Close();
  Result<Settings> again = ReadNext();
  if (again.ok() && !service_->LimitParkedTo(again->flags->most_requests())) {
    again = Error(Code::kResourceExhausted, "more requests wait than its queue has room for");
  }
  if (!again.ok()) {
    return Remark("going on with what was read before: {}{}\n", again.status().message(),
                  AdoptWhatIsGood());
  }
  next = *std::move(again);
  AdoptDoor(next);
}

void ServeRun::Reopen(bool undone) {
  const std::size_t waited = service_->gate().parked();
  server_->set_body_bytes(BodyBytes(served_, settings_.flags->most_body()));
  Announce();
  service_->CountReload(undone ? ReloadEnd::kUndone : ReloadEnd::kDone);
  Remark("{}: serving {}; requests that waited: {}\n", undone ? "undone" : "reloaded",
         settings_.flags->model(), waited);
  service_->Reopen(served_);
}

// Neither model can be opened: nothing is left to serve.
Status ServeRun::Lose(const Status& why) {
  service_->EndWatching();
  service_->RefuseAll(Error(Code::kUnavailable, "the model could not be opened"));
  EndRequests();
  return why;
}

Status ServeRun::End() {
  ending_ = true;
  Remark("ending: requests under way have {:g} s\n", settings_.flags->drain_seconds());
  service_->EndWatching();
  if (service_->gate().state() != ReloadGate::State::kServing) {
    service_->RefuseAll(Error(Code::kUnavailable, "the server is ending"));
  }
  EndRequests();
  if (served_.model != nullptr) served_.Close();  // those left are told so
  service_->FinishErrands();
  service_->set_server(nullptr);
  serving_file_.reset();
  server_.reset();
  if (served_.model != nullptr) models_.Close(served_, [this] { return MayWriteOn(); });
  return OkStatus();
}

// The first signal lets prefixes be written, also where it comes while they are.
bool ServeRun::MayWriteOn() {
  if (!signals_.EndsWithin(0ms)) return true;
  return !std::exchange(ending_, true);
}

// A second signal to end ends the waiting.
void ServeRun::EndRequests() {
  const Stopwatch waited;
  while (!server_->Drain(kSignalLook)) {
    if (signals_.EndsWithin(1ms)) return;
    if (waited.Seconds() >= settings_.flags->drain_seconds()) return;
  }
}

}  // namespace troupe
