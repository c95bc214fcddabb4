// The strong machine's side of an answer whose prompt is cut between two layers: takes the rows
// that an end sends, in messages that may overtake each other, through the layers that are behind
// the cut, and chooses the answer's one token (docs/formats/end-cloud.md). Of a longer answer it
// takes keys and values of the end's layers as well, leaves all to the model's prefix cache, and
// the rest is an answer like any other (cloud_answer.h). An end that leaves, or sends nothing for
// long, ends it. Thread-safe.
#pragma once

#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/clock.h"
#include "base/mutex.h"
#include "runtime/generation.h"
#include "server/cloud_answer.h"
#include "server/cut_host.h"
#include "server/cut_keys.h"
#include "server/served_model.h"

namespace troupe {

class CloudCut : public std::enable_shared_from_this<CloudCut> {
 public:
  // `host`: of the model that is used. Returns before the end.
  static void Run(SharedUse use, CloudCall call, HttpReplyPtr reply, const ForEnds& shared,
                  JobListener listener);
  // A message of rows for the cut of that end and name; replies with a receipt once they are
  // through.
  static void TakeStates(CutHost* host, std::uint64_t end, std::string_view name,
                         std::string_view message, HttpReplyPtr reply);

  void Fail(const Status& why) { Finish(why); }

 private:
  // What came of the rows that begin at one position.
  struct Message {
    std::vector<float> rows;  // until they go into the lane, once they are decoded
    std::size_t count = 0;    // of them
    RequestMemory::Share memory;
    bool decoded = false, runs = false, done = false;
    StatesReceipt receipt;
    std::vector<HttpReplyPtr> replies;  // of those who sent them; the same may come twice
  };

  // Keys and values on their way to where they are stored.
  struct Keys {
    KeysFrame frame;
    KeysPart part;
    RequestMemory::Share memory;
    HttpReplyPtr reply;
    Stopwatch waited = {};
  };

  CloudCut(SharedUse use, CloudCall call, HttpReplyPtr reply, const ForEnds& shared,
           JobListener listener);

  CutHost& host() const { return *use_->served().cuts; }
  Engine& engine() const;
  Status Prepare();
  Status CheckPrefix(std::size_t tokens) const;
  void Begin(EndTurns::Turn turn);
  void Take(std::string_view message, HttpReplyPtr reply);
  Status CheckRows(const StateFrame& frame) TROUPE_REQUIRES(mu_);
  // Makes a place for what they are decoded into.
  Status Keep(const StateFrame& frame, std::size_t bytes, HttpReplyPtr reply) TROUPE_REQUIRES(mu_);
  void Decode(std::size_t first, std::string_view message);
  // Those that are next go into the lane.
  void RunNext();
  void OnRun(std::size_t first, const PartLane::Outcome& outcome);
  void TakeKeys(std::string_view message, HttpReplyPtr reply);
  // Says whether they are new.
  Result<bool> KeepKeys(std::span<const std::byte> message, Keys& keys) TROUPE_REQUIRES(mu_);
  void StoreKeys(const std::shared_ptr<Keys>& keys);
  void OnStored(Keys& keys, const Status& status);
  // On the engine's thread, once all has come that was asked for: the model keeps it, some of it
  // between two passes, and the answer goes on.
  void GoOnIfAll();
  PartLane::Taken KeepMore(const PartLane::Prompt& prompt, std::size_t positions);
  void GoOn();
  void Choose(std::span<const float> logits);
  bool Write(std::string_view line);
  bool Beat();
  // Once: tells the end, and lets go of all.
  void Finish(const Status& status);

  const SharedUse use_;  // first: it ends last. The answer that goes on has it as well
  CloudCall call_;       // that answer's, once it goes on
  const std::uint64_t end_, name_;
  const std::size_t prefix_;  // as of CutAsk
  const HttpReplyPtr reply_;
  const ForEnds shared_;
  const JobListener listener_;
  const std::chrono::steady_clock::time_point came_;
  std::optional<TextGeneration> text_;   // the engine's thread's, once it has begun
  std::size_t kept_ = 0;                 // tokens by the model, for the answer; the same
  bool has_no_room_ = false;             // for more of them; the same
  int shrunk_ = 0;                       // times that it had fewer than before; the same
  std::size_t tokens_ = 0;               // that are cut
  std::optional<StateDecoder> decoder_;  // once it has begun it decodes on one thread alone

  Mutex mu_;
  std::optional<EndTurns::Turn> turn_ TROUPE_GUARDED_BY(mu_);
  std::shared_ptr<PartLane::Prompt> prompt_ TROUPE_GUARDED_BY(mu_);
  std::map<std::size_t, Message> messages_ TROUPE_GUARDED_BY(mu_);  // by position
  std::size_t next_ TROUPE_GUARDED_BY(mu_) = 0;                     // position for the lane
  CutKeys keys_ TROUPE_GUARDED_BY(mu_);
  std::size_t keys_pending_ TROUPE_GUARDED_BY(mu_) = 0;  // messages that are not stored yet
  double heard_ TROUPE_GUARDED_BY(mu_) = 0;              // of new rows, since came_
  double begun_seconds_ TROUPE_GUARDED_BY(mu_) = 0;
  bool goes_on_ TROUPE_GUARDED_BY(mu_) = false;  // all has come
  bool finished_ TROUPE_GUARDED_BY(mu_) = false;

  Mutex writing_;
  bool wrote_ TROUPE_GUARDED_BY(writing_) = false;
  bool closed_ TROUPE_GUARDED_BY(writing_) = false;
};

}  // namespace troupe
