#include "troupe/serve_flags.h"

#include <fmt/format.h>

#include <cstdlib>
#include <utility>

#include "troupe/config_file.h"
#include "troupe/config_options.h"
#include "troupe/fitted_cuts.h"
#include "troupe/key_file.h"
#include "troupe/option_parser.h"
#include "troupe/options.h"
#include "troupe/text_input.h"

namespace troupe {
namespace {

constexpr std::size_t kMostConfigBytes = 1 << 16;
constexpr std::size_t kMostPemBytes = 1 << 20;
constexpr Bytes kLeastBody = 64_KiB, kMostBody = 1_GiB;

std::string NameOfModel(const std::string& path) {
  const std::size_t slash = path.rfind('/');
  std::string name = slash == path.npos ? path : path.substr(slash + 1);
  if (name.ends_with(".gguf")) name.resize(name.size() - 5);
  return name;
}

}  // namespace

Result<std::unique_ptr<ServeFlags>> ServeFlags::Read(const std::vector<std::string>& arguments) {
  auto flags = std::make_unique<ServeFlags>();
  Options options("troupe serve");
  flags->AddTo(options);
  const ParsedLine line = ParseLine(options, arguments);
  if (line.kind != ParsedLine::Kind::kComplete) return InvalidArgument("{}", line.text);
  if (!flags->config_.empty()) {
    TROUPE_RETURN_IF_ERROR(flags->ApplyFile(options, line.given));
  }
  TROUPE_RETURN_IF_ERROR(flags->engine_.file_status());
  return flags;
}

Status ServeFlags::ApplyFile(const Options& options, const std::vector<const Option*>& given) {
  const std::string path = config_;
  TROUPE_ASSIGN_OR_RETURN(const std::string text, ReadTextFile(path, kMostConfigBytes));
  TROUPE_ASSIGN_OR_RETURN(const Config config, ParseConfig(path, text));
  for (const ConfigLine& line : config.lines) {
    if (line.name == "config") {
      return AtLine(config, line.number, InvalidArgument("a file cannot name another"));
    }
  }
  TROUPE_RETURN_IF_ERROR(ApplyConfig(config, options, given));
  for (const ConfigLine& line : config.lines) {
    const Option* const option = options.Find("--" + line.name);
    if (std::ranges::find(given, option) != given.end()) continue;
    if (option->takes() == Option::Takes::kNothing && line.value == "false") continue;
    file_options_[line.name].push_back(line.value);
  }
  config_.clear();  // all is known now
  Status usage = CheckUsage();
  return usage.ok() ? usage : std::move(usage).WithContext(path);
}

void ServeFlags::AddTo(Options& options) {
  options.Heading("Server");
  options
      .Add("--config", config_,
           "Read these options from a file, too: a line NAME = VALUE for each. The command line "
           "wins. SIGHUP reads the file again and goes over to what it says")
      .Type("FILE");
  AddDoorOptions(options);
  AddRequestOptions(options);
  sampler_.AddTo(options);
  engine_.AddChatTemplate(options);
  cluster_.AddTo(options);
  split_.AddTo(options);
  engine_.AddTo(options, EngineFlags::ModelArgument::kOptional);
  engine_.AddSpeculation(options);
}

void ServeFlags::AddDoorOptions(Options& options) {
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
      .Add(
          "--cors", access_.origins,
          "Let pages of this origin read answers (* for all; null for pages of files, and for what "
          "any site shows in a sandbox); may be repeated")
      .Type("ORIGIN");
  options
      .Add("--allow-host", access_.hosts,
           "A name of this machine in requests; without keys, a server that listens to its own "
           "machine answers none but 'localhost' and addresses; may be repeated")
      .Type("NAME");
  options.Add("--tls-certificate", http_.certificate, "Speak TLS with this certificate (PEM)")
      .Type("FILE");
  options.Add("--tls-key", http_.key, "Its private key (PEM)").Type("FILE");
  options
      .Add("--connections", http_.limits.connections,
           "Connections at the same time (1024); each takes 24 KiB of the budget, 96 KiB with TLS")
      .Between(std::size_t{1}, std::size_t{65536})
      .Type("N");
  options
      .Add("--most-body", most_body_,
           "Length of a request's body at most, pictures and files in it included (as long as a "
           "prompt that fits may be, 1 to 8 MiB); beyond 8 MiB up to five times as much is planned "
           "for")
      .Type("SIZE");
  options
      .Add("--access-log", log_,
           "Add a line for each request to this file (-: standard output): nothing of headers and "
           "bodies")
      .Type("FILE");
  options.Add("--log-format", log_format_, "Format of these lines (text)")
      .OneOf({"text", "json"})
      .Type("FORMAT")
      .Needs("--access-log");
}

void ServeFlags::AddRequestOptions(Options& options) {
  AddParallelOption(options, parallel_, "Requests that are answered at the same time (4)");
  options.Add("--queue", queue_, "Requests that may wait beside them (64)")
      .Between(std::size_t{0}, kMostTokens)
      .Type("N");
  options
      .Add("--pass-ms", pass_ms_,
           "Time that a pass should take while others wait for their next token (150)")
      .Between(1.0, 60'000.0)
      .Type("MS");
  options
      .Add("--drain-s", drain_seconds_,
           "Time that requests have to end after SIGTERM before they are cancelled (30)")
      .Between(0.0, 86'400.0)
      .Type("S");
  options.AddFlag(
      "--explain", explain_,
      "Print the memory plan, as `troupe run` does; with --cloud also say of each answer where it "
      "begins and goes on, and why, as --explain-places does. Why peers of a cluster are asked or "
      "not: `troupe cluster explain`");
  options.AddFlag("--no-prefix-cache", no_prefix_cache_,
                  "Read every prompt from its first token, even if another began like it");
  options
      .AddFlag(
          "--cache-per-key", cache_per_key_,
          "What is read of prompts serves requests with the same key alone, so that nobody can "
          "find out what others have asked; it is not kept in --prefix-file")
      .Excludes("--no-prefix-cache");
  options
      .Add("--prefix-file", prefix_file_,
           "Keep what was read of prompts in this file from one run to the next; a folder: each "
           "model has a file of its own in it")
      .Type("FILE")
      .Excludes("--no-prefix-cache");
  options
      .Add("--pooling", pooling_,
           "What /v1/embeddings makes one vector of: all tokens of a text, or its last one (as the "
           "model's file says)")
      .OneOf({"mean", "last"})
      .Type("HOW");
  options
      .Add("-n,--tokens", tokens_,
           "Tokens of an answer at most, where its request says nothing (the context)")
      .Between(std::size_t{1}, kMostTokens)
      .Type("N");
  options
      .Add("--most-tokens", most_tokens_,
           "Tokens of an answer at most, whatever its request says: a longer one is cut off there")
      .Between(std::size_t{1}, kMostTokens)
      .Type("N");
  options
      .Add("--request-s", request_seconds_,
           "Time that a request may take at most, from its arrival to its end, whatever it says; "
           "then it fails (no limit)")
      .Between(0.001, 7 * 86'400.0)
      .Type("S");
  options
      .Add("--silence-s", silence_seconds_,
           "Time after which an answer that is not streamed begins with blanks, as clients and "
           "proxies hang up on silence; an error after that cuts it off; 0: never (30)")
      .Between(0.0, 7 * 86'400.0)
      .Type("S");
  options
      .Add("--reload-wait-s", reload_wait_seconds_,
           "Time that a request may wait for the model that a reload opens; then it gets 503 (600)")
      .Between(0.0, 7 * 86'400.0)
      .Type("S");
}

Status ServeFlags::CheckUsage() const {
  TROUPE_RETURN_IF_ERROR(sampler_.Sampler().status());
  if (!config_.empty()) return OkStatus();
  if (model().empty()) return InvalidArgument("MODEL is required");
  TROUPE_RETURN_IF_ERROR(cluster_.CheckUsage());
  TROUPE_RETURN_IF_ERROR(split_.CheckUsage());
  if (http_.certificate.empty() != http_.key.empty()) {
    return InvalidArgument("--tls-certificate and --tls-key belong together");
  }
  if (most_body_ && (*most_body_ < kLeastBody || *most_body_ > kMostBody)) {
    return InvalidArgument("--most-body: {}, expected {} to {}", ToString(*most_body_),
                           ToString(kLeastBody), ToString(kMostBody));
  }
  return OkStatus();
}

Status ServeFlags::CheckFollows(const ServeFlags& before) const {
  const auto check = [](const char* name, const auto& was, const auto& is) {
    if (was == is) return OkStatus();
    return Error(Code::kFailedPrecondition, "{}: '{}' in place of '{}' needs a restart", name, is,
                 was);
  };
  TROUPE_RETURN_IF_ERROR(check("host", before.http_.host, http_.host));
  TROUPE_RETURN_IF_ERROR(check("port", before.port_, port_));
  if (before.http_.certificate.empty() != http_.certificate.empty()) {
    return Error(Code::kFailedPrecondition, "tls-certificate: to {} TLS needs a restart",
                 http_.certificate.empty() ? "do without" : "speak");
  }
  if (!(before.cluster_ == cluster_)) {
    return Error(Code::kFailedPrecondition, "other options of the cluster need a restart");
  }
  const auto body = [](const ServeFlags& flags) { return ToString(flags.longest_body()); };
  TROUPE_RETURN_IF_ERROR(check("most-body", body(before), body(*this)));
  return check("connections", before.http_.limits.connections, http_.limits.connections);
}

Result<AccessRules> ServeFlags::Access() const {
  AccessRules access = access_;
  if (!keys_.empty()) {
    TROUPE_ASSIGN_OR_RETURN(access.keys, ReadKeys(keys_));
  }
  const char* const own = std::getenv("TROUPE_API_KEY");
  if (own != nullptr && *own != '\0') {
    TROUPE_ASSIGN_OR_RETURN(const std::vector<std::string> keys, ParseKeys("TROUPE_API_KEY", own));
    access.keys.insert(access.keys.end(), keys.begin(), keys.end());
  }
  if (cache_per_key_ && access.keys.empty()) {
    return InvalidArgument(
        "--cache-per-key: no keys are asked for, so a client could name another's (--api-keys FILE "
        "or TROUPE_API_KEY)");
  }
  access.local_only = access.keys.empty() && IsLoopback(http_.host);
  return access;
}

std::string ServeFlags::RemarkOn(const AccessRules& access) const {
  if (cache_per_key_ && !prefix_file_.empty()) {
    return "nothing is kept in --prefix-file, as --cache-per-key gives each key prefixes of its "
           "own";
  }
  if (!access.keys.empty() || access.local_only) return {};
  return fmt::format(
      "no key is asked for at {}: whoever reaches this machine may use the model (--api-keys FILE "
      "or TROUPE_API_KEY)",
      http_.host);
}

HttpServerOptions ServeFlags::Http() const {
  HttpServerOptions options = http_;
  options.port = static_cast<std::uint16_t>(port_);
  options.limits.all_body_bytes = HeldOfBodies(longest_body()).count();
  options.limits.all_unread_bytes = kUnreadByClients.count();
  return options;
}

Status ServeFlags::CheckFiles() const {
  for (const std::string& path : {http_.certificate, http_.key}) {
    if (path.empty()) continue;
    TROUPE_RETURN_IF_ERROR(ReadTextFile(path, kMostPemBytes).status());
  }
  return OkStatus();
}

Result<std::optional<HttpCertificate>> ServeFlags::Certificate() const {
  if (http_.certificate.empty()) return std::optional<HttpCertificate>();
  TROUPE_RETURN_IF_ERROR(CheckFiles());
  TROUPE_ASSIGN_OR_RETURN(HttpCertificate read,
                          HttpCertificate::Read(http_.certificate, http_.key));
  return std::optional<HttpCertificate>(std::move(read));
}

Result<std::unique_ptr<AccessLog>> ServeFlags::OpenLog() const {
  if (log_.empty()) return std::unique_ptr<AccessLog>();
  return AccessLog::Open(log_, log_format_ == "json" ? LogStyle::kJson : LogStyle::kText);
}

EngineFlags ServeFlags::EngineWith(Bytes held) const {
  EngineFlags engine = engine_;
  PlanForServing({.parallel = parallel_,
                  .queue = queue_,
                  .connections = http_.limits.connections,
                  .longest_body = longest_body(),
                  .tls = !http_.certificate.empty(),
                  .has_peers = cluster_.any(),
                  .has_cloud = split_.has_cloud(),
                  .cuts = split_.cuts(),
                  .cut_tokens_of_cloud = split_.cut_tokens_of_cloud(),
                  .fitted_bases = split_.reads_bases() ? BytesOfFittedBases(model()) : Bytes()},
                 held, engine);
  engine.TakesAnswersOfPeersIn(cluster_.peer_answers());
  if (!prefix_file_.empty() || split_.any() || cluster_.any()) engine.TakeFingerprint();
  return engine;
}

ModelOptions ServeFlags::ForRequests() const {
  return {.sequences = parallel_,
          .queue = queue_,
          .pass_seconds = pass_ms_ * 1e-3,
          .prefix_cache = !no_prefix_cache_,
          .answer_rules = true};
}

Result<ServiceOptions> ServeFlags::Service() const {
  TROUPE_ASSIGN_OR_RETURN(const Sampling sampling, sampler_.Sampler());
  std::optional<Pooling> pooling;
  if (!pooling_.empty()) pooling = pooling_ == "mean" ? Pooling::kMean : Pooling::kLast;
  const auto time_of = [](double seconds) {
    return std::chrono::nanoseconds(static_cast<std::int64_t>(seconds * 1e9));
  };
  std::optional<std::chrono::nanoseconds> most_time;
  if (request_seconds_) most_time = time_of(*request_seconds_);
  std::optional<std::chrono::nanoseconds> most_silence;
  if (silence_seconds_ > 0) most_silence = time_of(silence_seconds_);
  return ServiceOptions{.name = name_.empty() ? NameOfModel(model()) : name_,
                        .sampling = sampling,
                        .seed_is_given = sampler_.seed_is_given(),
                        .tokens = tokens_.value_or(0),
                        .most_tokens = most_tokens_,
                        .most_time = most_time,
                        .most_silence = most_silence,
                        .most_parked = time_of(reload_wait_seconds_),
                        .cache_per_key = cache_per_key_,
                        .pooling = pooling};
}

}  // namespace troupe
