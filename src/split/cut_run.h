// One answer whose prompt is cut between two layers: has the end's engine run the first ones, chunk
// by chunk, and sends the rows to the cloud, which runs the others and chooses the token. Of a
// longer answer the keys and values of the first layers go there as well, and the cloud goes on
// behind them by itself. What comes when is CutFlow's to say. On the loop's thread.
#pragma once

#include <troupe/request.h>

#include <cstddef>
#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "base/clock.h"
#include "base/status.h"
#include "split/codec/state_codec.h"
#include "split/flow/busy_time.h"
#include "split/flow/cut_flow.h"
#include "split/flow/cut_plan.h"
#include "split/token_source.h"
#include "split/wire/cut_ask.h"

namespace troupe {

// Sums of all cut prompts. The lanes say how long each was at work on any of them.
struct CutCounts {
  std::uint64_t begun = 0, answered = 0, failed = 0;
  std::uint64_t went_on = 0;  // of those answered: in the cloud, with keys and values of here
  std::uint64_t rows = 0;     // that crossed
  // By the layer before which they did: this machine ran those below it, the cloud the others.
  std::map<std::uint32_t, std::uint64_t> rows_before;
  std::uint64_t lossy_rows = 0;    // of these: not bit for bit
  std::uint64_t bytes = 0;         // of messages with rows
  std::uint64_t bytes_spared = 0;  // by an entropy coder, beside these
  std::uint64_t keys_bytes = 0;    // of messages with keys and values
  double encode_seconds = 0;       // in which the loop's thread wrote rows
  BusyTime end, link, cloud;
};

// What cut prompts know of the machine that they are put together on.
class CutWorld {
 public:
  virtual ~CutWorld() = default;

  virtual Nanos Now() const = 0;
  virtual std::uint32_t layers() const = 0;  // of the model
  virtual double RoundTripSeconds() const = 0;

  // The end's layers of one prompt, up to the cut, chunk after chunk.
  struct Lower {
    Status status;
    std::vector<float> rows;
    // Messages with their keys and values in these layers, if they are wanted.
    std::vector<std::vector<std::byte>> keys = {};
    double seconds = 0;  // it took, up to
    Nanos ended = 0;
  };
  using OnLower = std::function<void(const Lower& lower)>;
  using RunLower = std::function<void(std::vector<TokenId> tokens, OnLower on_lower)>;
  virtual Result<RunLower> OpenLower(std::uint32_t layer, std::size_t tokens, bool keys) = 0;
  // exact: whatever code was asked for.
  virtual Result<StateEncoder> EncoderFor(const CutPlan& plan, bool exact) = 0;
  // Of one message: rows, and the bytes that stand for them.
  struct EncodedRows {
    std::size_t rows = 0, bytes = 0;
    bool rans = false;  // by a code with an entropy coder
    double seconds = 0;
  };
  virtual void OnEncoded(const CutPlan& plan, const EncodedRows& encoded) = 0;
  virtual std::uint64_t BasisOf(std::uint32_t layer, const StateCode& code) const = 0;

  // The cloud's part, whose events are those of a run.
  virtual TokenSource::Stop StartFar(const RunAsk& ask, RunEvents events) = 0;
  using OnReceipt = std::function<void(const Result<StatesReceipt>& receipt)>;
  virtual TokenSource::Stop SendStates(std::uint64_t name, std::span<const std::byte> message,
                                       OnReceipt on_receipt) = 0;

  virtual CutMeter& meter() = 0;
  virtual CutCounts& counts() = 0;
  // It is over: OK, or why the answer has to be chosen otherwise.
  virtual void OnCutOver(const Status& status) = 0;
  // What an answered one took, once all is known.
  virtual void Report(const std::string& line) = 0;
};

class CutRun : public std::enable_shared_from_this<CutRun> {
 public:
  struct Ask {
    Request request;  // its prompt is token ids
    bool exact = true;
    CutPlan plan;
    std::uint64_t name = 0;                    // of this cut alone
    std::optional<std::uint64_t> drafts = {};  // as of RunAsk
    // The cloud is asked for its part before there are rows. Where others are to be computed first
    // it would keep a turn there that nobody uses.
    bool far_at_once = true;
  };
  // Fails where nothing could begin. The world must outlive it.
  static Result<std::shared_ptr<CutRun>> Start(CutWorld& world, Ask ask, RunEvents events);
  ~CutRun();

  void Stop();
  void OnTime();
  // Rows that the end still has to compute, and up to which layer.
  std::size_t rows_left() const { return over_ ? 0 : tokens_.size() - flow_.computed(); }
  std::uint32_t layer() const { return ask_.plan.layer; }
  bool sends_keys() const { return !over_ && ask_.plan.prefix > 0; }
  // A failure of this machine, by a code that is not taken for a refusal of the cloud.
  static Status OfTheEnd(const Status& why);
  // Chunks of such a prompt that are computed and not in the cloud, at most.
  static constexpr std::size_t kMostAheadWithKeys = 2;

 private:
  CutRun(CutWorld& world, Ask ask, StateEncoder encoder, CutWorld::RunLower lower,
         RunEvents events);
  void StartFar();
  void Do(const CutFlow::Step& step);
  void Compute(const CutFlow::Chunk& chunk);
  void OnLower(const CutFlow::Chunk& chunk, const CutWorld::Lower& lower);
  void Send(const CutFlow::Chunk& chunk);
  void SendNext();
  struct Message {
    std::size_t chunk = 0;  // by its first token
    std::vector<std::byte> bytes;
    // Where the cloud had no room: since when, how long it waits by now, and until when.
    Nanos refused = 0, pause = 0, again = 0;
  };
  void Put(Message message);  // on the link
  bool KeepForLater(Message message, const Status& why);
  void OnReceipt(std::uint64_t id, const Result<StatesReceipt>& receipt);
  void CountReceipt(const StatesReceipt& receipt, std::size_t bytes, Nanos sent);
  void OnFirstToken();
  void TellWork() const;
  void End(const Status& status);
  void EndCut(const Status& status);  // once
  bool WaitsForCloud() const { return stop_far_ && (!ready_ || flow_.under_way() > 0); }
  void Report();

  CutWorld& world_;
  const Ask ask_;
  // That are cut, of the prompt and those that the answer begins with: all, or as many as the plan
  // says.
  std::vector<TokenId> tokens_;
  StateEncoder encoder_;
  CutWorld::RunLower lower_;
  const RunEvents events_;
  CutFlow flow_;
  const Nanos begun_;
  Nanos ended_at_ = 0;
  // What the end has computed of a chunk and the cloud has not said that it could ask for.
  struct Computed {
    std::vector<float> rows;
    std::vector<std::vector<std::byte>> keys;
  };
  struct Sending {
    Message message;  // kept, as it may find no room
    Nanos sent = 0;
    TokenSource::Stop stop;
  };
  std::map<std::size_t, Computed> computed_;         // by token
  std::deque<Message> rows_waiting_, keys_waiting_;  // for a place on the link
  std::deque<Message> refused_;                      // for room in the cloud
  std::map<std::size_t, std::size_t> left_;          // messages of a chunk that are not through
  std::map<std::uint64_t, Sending> sending_;         // on the link
  std::uint64_t last_message_ = 0;
  TokenSource::Stop stop_far_;  // null: not begun, or over
  Nanos moved_ = 0;             // when the cloud last did something for it
  bool ready_ = false;
  bool over_ = false, answered_ = false;  // the cut
  bool ended_ = false;                    // the answer
  BusyTime end_, link_, cloud_;           // of this prompt
};

}  // namespace troupe
