// What `troupe serve` is told, by its command line and by the file that --config names: read again
// at each SIGHUP. Opening and serving are serve_run.h's.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/status.h"
#include "server/access_log.h"
#include "server/access_rules.h"
#include "server/http/http_server.h"
#include "server/served_model.h"
#include "troupe/cluster_flags.h"
#include "troupe/engine_flags.h"
#include "troupe/sampler_flags.h"
#include "troupe/serve_changes.h"
#include "troupe/serving_needs.h"
#include "troupe/split_flags.h"

namespace troupe {

class ServeFlags {
 public:
  // Of a command line, and of the file that it names: the command line wins, and the path of the
  // model may stand in either.
  static Result<std::unique_ptr<ServeFlags>> Read(const std::vector<std::string>& arguments);

  void AddTo(Options& options);
  // What is wrong with the options taken together, as far as no file may add to them.
  Status CheckUsage() const;

  const std::string& model() const { return engine_.model(); }
  double drain_seconds() const { return drain_seconds_; }
  std::size_t parallel() const { return parallel_; }
  // That are answered or wait at the same time.
  std::size_t most_requests() const { return parallel_ + queue_; }
  std::size_t most_in_cloud() const { return MostInCloud(parallel_, queue_); }

  // Of a body; absent: as the model has it.
  std::optional<Bytes> most_body() const { return most_body_; }

  const ClusterFlags& cluster() const { return cluster_; }
  const SplitFlags& split() const { return split_; }
  bool explain() const { return explain_; }
  const SamplerFlags& sampler() const { return sampler_; }
  // Empty: what is read is forgotten at the end.
  const std::string& prefix_file() const { return prefix_file_; }
  // Null: none is written.
  Result<std::unique_ptr<AccessLog>> OpenLog() const;
  // Whether those that the socket needs can be read.
  Status CheckFiles() const;
  // What they say; none: connections are plain.
  Result<std::optional<HttpCertificate>> Certificate() const;

  // What the file says, as far as the command line does not win: to compare it with another
  // reading.
  const FileOptions& file_options() const { return file_options_; }
  // A server that is told `before` cannot go over to this without being started anew.
  Status CheckFollows(const ServeFlags& before) const;

  // Reads the file of keys.
  Result<AccessRules> Access() const;
  // What whoever starts the server should know: that anyone may ask who reaches this machine.
  // Empty: nothing.
  std::string RemarkOn(const AccessRules& access) const;
  // Without the limits that depend on the model.
  HttpServerOptions Http() const;
  // With the memory that the server takes beside the model, of which it has `held` already.
  EngineFlags EngineWith(Bytes held) const;
  ModelOptions ForRequests() const;
  Result<ServiceOptions> Service() const;

 private:
  Bytes longest_body() const { return most_body_.value_or(kUsualBody); }
  void AddDoorOptions(Options& options);
  void AddRequestOptions(Options& options);
  Status ApplyFile(const Options& options, const std::vector<const Option*>& given);

  HttpServerOptions http_;
  AccessRules access_;
  EngineFlags engine_;
  SamplerFlags sampler_;
  bool explain_ = false;
  ClusterFlags cluster_;
  SplitFlags split_;
  FileOptions file_options_;
  bool no_prefix_cache_ = false, cache_per_key_ = false;
  std::uint32_t port_ = 8080, parallel_ = ServingNeeds().parallel;
  std::size_t queue_ = ServingNeeds().queue;
  double pass_ms_ = 150, drain_seconds_ = 30;
  std::optional<std::size_t> tokens_, most_tokens_;
  std::optional<Bytes> most_body_;
  std::optional<double> request_seconds_;
  double reload_wait_seconds_ = 600, silence_seconds_ = 30;
  std::string name_, keys_, config_, prefix_file_, log_, log_format_ = "text", pooling_;
};

}  // namespace troupe
