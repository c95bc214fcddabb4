// `troupe serve`: a model behind HTTP, until it is told to end.
#include <fmt/core.h>

#include <algorithm>
#include <chrono>
#include <csignal>
#include <cstdlib>
#include <optional>
#include <string>
#include <thread>

#include "api/answer_rules.h"
#include "api/model_access.h"
#include "runtime/machine_costs.h"
#include "server/http/http_server.h"
#include "server/service.h"
#include "troupe/commands.h"
#include "troupe/engine_flags.h"
#include "troupe/options.h"
#include "troupe/remark.h"
#include "troupe/sampler_flags.h"
#include "troupe/text_input.h"

namespace troupe {
namespace {

constexpr std::size_t kMostKeyBytes = 1 << 16;
constexpr std::uint32_t kMostServed = 1024;
// Connections, bodies of requests, and what clients have not read yet.
constexpr Bytes kTransport = 24_MiB;

// No longer than a prompt that fits may be, each byte of it escaped, and what stands beside it.
std::size_t BodyBytes(const Engine& engine) {
  constexpr std::size_t kLeast = 1 << 20, kMost = 16 << 20, kEscaped = 6;
  return std::clamp(engine.plan().context() * engine.tokenizer().longest_token() * kEscaped, kLeast,
                    kMost);
}

// SIGTERM and SIGINT, taken by one thread: whoever waits here is told of the first.
class EndSignals {
 public:
  EndSignals() {
    sigemptyset(&signals_);
    sigaddset(&signals_, SIGTERM);
    sigaddset(&signals_, SIGINT);
    pthread_sigmask(SIG_BLOCK, &signals_, &before_);
  }
  ~EndSignals() { pthread_sigmask(SIG_SETMASK, &before_, nullptr); }
  EndSignals(const EndSignals&) = delete;
  EndSignals& operator=(const EndSignals&) = delete;

  void Wait() const {
    int signal = 0;
    sigwait(&signals_, &signal);
  }
  // Whether another one came within that time.
  bool WaitFor(std::chrono::milliseconds time) const {
    const timespec longest{.tv_sec = time.count() / 1000, .tv_nsec = time.count() % 1000 * 1000000};
    return sigtimedwait(&signals_, nullptr, &longest) > 0;
  }

 private:
  sigset_t signals_ = {}, before_ = {};
};

// One a line; blanks around it and empty lines do not count.
Result<std::vector<std::string>> KeysIn(const std::string& path) {
  TROUPE_ASSIGN_OR_RETURN(const std::string text, ReadTextFile(path, kMostKeyBytes));
  std::vector<std::string> keys;
  std::size_t begin = 0;
  while (begin < text.size()) {
    const std::size_t end = std::min(text.find('\n', begin), text.size());
    std::string_view line = std::string_view(text).substr(begin, end - begin);
    while (!line.empty() && std::isspace(static_cast<unsigned char>(line.front()))) {
      line.remove_prefix(1);
    }
    while (!line.empty() && std::isspace(static_cast<unsigned char>(line.back()))) {
      line.remove_suffix(1);
    }
    if (!line.empty()) keys.emplace_back(line);
    begin = end + 1;
  }
  if (keys.empty()) return InvalidArgument("{}: no key in it, expected one a line", path);
  return keys;
}

std::string NameOf(const std::string& path) {
  const std::size_t slash = path.rfind('/');
  std::string name = slash == path.npos ? path : path.substr(slash + 1);
  if (name.ends_with(".gguf")) name.resize(name.size() - 5);
  return name;
}

class ServeCommand final : public Command {
 public:
  void AddOptions(Options& options) override {
    options.Heading("Server");
    options.Add("--host", http_.host, "Address to listen on; 0.0.0.0: every one of this machine")
        .Type("ADDRESS");
    options.Add("--port", port_, "Port to listen on; 0: any that is free")
        .Between(std::uint32_t{0}, std::uint32_t{65535})
        .Type("PORT");
    options.Add("--name", name_, "The model's name for clients (the file's)").Type("NAME");
    options
        .Add("--api-keys", keys_,
             "Only clients with one of the keys in this file, one a line, are answered; "
             "TROUPE_API_KEY in the environment is one more")
        .Type("FILE");
    options
        .Add("--cors", access_.origins,
             "Let pages of this origin read answers (* for all); may be repeated")
        .Type("ORIGIN");
    options
        .Add("--allow-host", access_.hosts,
             "A name of this machine in requests; without keys, a server that listens to its own "
             "machine answers none but 'localhost' and addresses; may be repeated")
        .Type("NAME");
    options.Add("--tls-certificate", http_.certificate, "Speak TLS with this certificate (PEM)")
        .Type("FILE");
    options.Add("--tls-key", http_.key, "Its private key (PEM)").Type("FILE");
    options.Add("--parallel", parallel_, "Requests that are answered at the same time (4)")
        .Between(std::uint32_t{1}, kMostServed)
        .Type("N");
    options.Add("--queue", queue_, "Requests that may wait beside them (64)")
        .Between(std::size_t{0}, kMostTokens)
        .Type("N");
    options
        .Add("--pass-ms", pass_ms_,
             "Time that a pass should take while others wait for their next token (200)")
        .Between(1.0, 60'000.0)
        .Type("MS");
    options
        .Add("--drain-s", drain_s_,
             "Time that requests have to end after SIGTERM before they are cancelled (30)")
        .Between(0.0, 86'400.0)
        .Type("S");
    options.AddFlag("--no-prefix-cache", no_prefix_cache_,
                    "Read every prompt from its first token, even if another began like it");
    options.Add("-n,--tokens", tokens_, "Most tokens of an answer that says nothing (the context)")
        .Between(std::size_t{1}, kMostTokens)
        .Type("N");
    sampler_.AddTo(options);
    engine_.AddTo(options);
  }

  Status CheckUsage() const override {
    if (http_.certificate.empty() != http_.key.empty()) {
      return InvalidArgument("--tls-certificate and --tls-key belong together");
    }
    return sampler_.Sampler().status();
  }

  Status Run() override {
    // Blocked in every thread from here on, so that none of them dies of it.
    const EndSignals signals;
    TROUPE_ASSIGN_OR_RETURN(const Sampling sampling, sampler_.Sampler());
    TROUPE_RETURN_IF_ERROR(FindKeys());
    engine_.HoldSequences(parallel_);
    engine_.TakesBeside([this](const ModelConfig& config) {
      return kTransport + AnswerRules::MostBytes(config.vocabulary, parallel_);
    });
    TROUPE_ASSIGN_OR_RETURN(std::unique_ptr<Engine> engine, engine_.Open());
    http_.limits.body_bytes = BodyBytes(*engine);
    TROUPE_ASSIGN_OR_RETURN(const std::unique_ptr<Model> model,
                            ModelAccess::Of(std::move(engine), {.sequences = parallel_,
                                                                .queue = queue_,
                                                                .pass_seconds = pass_ms_ * 1e-3,
                                                                .prefix_cache = !no_prefix_cache_,
                                                                .answer_rules = true}));
    Service service(*model, {.name = name_.empty() ? NameOf(engine_.model()) : name_,
                             .sampling = sampling,
                             .seed_is_given = sampler_.seed_is_given(),
                             .most_tokens = tokens_.value_or(0)});
    access_.local_only = access_.keys.empty() && IsLoopback(http_.host);
    Router router(access_);
    service.AddTo(router);
    http_.port = static_cast<std::uint16_t>(port_);
    TROUPE_ASSIGN_OR_RETURN(
        const std::unique_ptr<HttpServer> server,
        HttpServer::Listen(
            http_, {.handle =
                        [&router](HttpRequest request, HttpReplyPtr reply) {
                          router.Serve(std::move(request), std::move(reply));
                        },
                    .refusal = [&router](const HttpRequest& head) { return router.Refusal(head); },
                    .error = TransportError}));
    service.set_server(server.get());
    Remark("serving {} at {}\n", engine_.model(), server->Address());
    signals.Wait();
    Remark("ending: requests under way have {:g} s\n", drain_s_);
    service.EndWatching();
    EndRequests(*server, signals);
    model->Close();
    service.set_server(nullptr);
    RememberRun(ModelAccess::EngineOf(*model), TokensSeen());
    return OkStatus();
  }

 private:
  Status FindKeys() {
    if (!keys_.empty()) {
      TROUPE_ASSIGN_OR_RETURN(access_.keys, KeysIn(keys_));
    }
    const char* const key = std::getenv("TROUPE_API_KEY");
    if (key != nullptr && *key != '\0') access_.keys.emplace_back(key);
    return OkStatus();
  }

  // A second signal ends the waiting.
  void EndRequests(HttpServer& server, const EndSignals& signals) const {
    const auto start = std::chrono::steady_clock::now();
    const std::chrono::duration<double> longest(drain_s_);
    while (!server.Drain(std::chrono::milliseconds(50))) {
      if (signals.WaitFor(std::chrono::milliseconds(1))) return;
      if (std::chrono::steady_clock::now() - start >= longest) return;
    }
  }

  HttpServerOptions http_;
  AccessRules access_;
  EngineFlags engine_;
  SamplerFlags sampler_;
  bool no_prefix_cache_ = false;
  std::uint32_t port_ = 8080, parallel_ = 4;
  std::size_t queue_ = 64;
  double pass_ms_ = 200, drain_s_ = 30;
  std::optional<std::size_t> tokens_;
  std::string name_, keys_;
};

}  // namespace

std::unique_ptr<Command> MakeServeCommand() { return std::make_unique<ServeCommand>(); }

}  // namespace troupe
