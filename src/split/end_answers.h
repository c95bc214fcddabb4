// The weak machine's side of an end and its cloud: starts each request where it is expected to end
// sooner, in the cloud or on this machine's own engine, and has answers go on here when the cloud
// goes, and there when it comes back. Every byte is the model's alone, wherever it was chosen:
// where the rule may choose the cloud all answers are exact, whatever the model was opened to lose.
// With rule "end" they lose it, and then the cloud is asked for none. Thread-safe. Design:
// docs/design/end-cloud.md.
#pragma once

#include <troupe/model.h>

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>

#include "base/status.h"
#include "split/cloud_source.h"
#include "split/cut_desk.h"
#include "split/device_watch.h"
#include "split/end_state.h"
#include "split/flow/answer_flow.h"
#include "split/flow/cloud_watch.h"
#include "split/flow/place_rule.h"
#include "split/memory_watch.h"

namespace troupe {

struct EndOptions {
  CloudAddress cloud;
  bool any_certificate = false;  // of the cloud
  std::string rule = "auto";     // PlaceRuleNames
  RouteAwareLimits route_aware = {};
  ModelProof proof;
  std::size_t most_in_cloud = 4;  // answers at a time
  std::size_t most_answers = 68;  // in both places, with those that wait
  FlowLimits limits = {};
  CloudWatch::Pauses pauses = {};
  // Lines for people, from the loop's thread; null: nobody reads them.
  std::function<void(const std::string& line)> say = {};
  // What this device is looked at by; absent: its power and load are not looked at.
  std::optional<DeviceWatch::Options> device = {};
  // Absent: the cache of experts stays as it was planned.
  std::optional<MemoryWatchOptions> memory = {};
  bool explain = false;  // lines of each answer: where it begins and goes on, and why
  CutOptions cuts = {};  // of prompts by layers; none unless tokens are said
};

class EndAnswers {
 public:
  // The model must outlive it, and be closed after it. kResourceExhausted: the system gives no
  // thread.
  static Result<std::unique_ptr<EndAnswers>> Open(Model& model, EndOptions options);
  ~EndAnswers();
  EndAnswers(const EndAnswers&) = delete;
  EndAnswers& operator=(const EndAnswers&) = delete;

  // As Model::Start; callbacks come from a thread of its own. What the cloud cannot do goes to the
  // model: vectors of texts, and requests that want to see logits.
  Result<Generation> Start(Request request, Callbacks callbacks);

  // Ends all answers with kCancelled. Any number of times; not from a callback.
  void Close();

  EndState State() const;
  // Whether rows of cut prompts may cross by a code that is not exact, as the model and what was
  // measured of it allow. As long as it lives.
  bool cuts_lose() const;

 private:
  class Impl;
  explicit EndAnswers(std::unique_ptr<Impl> impl);
  const std::unique_ptr<Impl> impl_;
};

}  // namespace troupe
