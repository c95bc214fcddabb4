// The cloud as a place that chooses tokens: a request of HTTP for each run, whose response is lines
// of tokens (docs/formats/end-cloud.md). Measures what the cloud takes. On the loop's thread.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>

#include "base/clock.h"
#include "server/http/http_client.h"
#include "split/cloud_queue.h"
#include "split/cloud_talks.h"
#include "split/flow/known_prefixes.h"
#include "split/flow/place_costs.h"
#include "split/token_source.h"
#include "split/wire/cloud_hello.h"
#include "split/wire/cut_ask.h"
#include "split/wire/draft_offer.h"
#include "split/wire/model_proof.h"

namespace troupe {

// Where the cloud is, and who asks it.
struct CloudAddress {
  HttpUrl url;
  std::string key;  // empty: none
};

HttpHeaders HeadersFor(const CloudAddress& cloud);

// What is wrong where the cloud has answered with something else than 200. kFailedPrecondition: it
// is not one for this end, whatever it is asked. kResourceExhausted: it is, but not now, or not for
// this request.
Status JudgeCloud(int status, std::string_view body);

class CloudSource final : public TokenSource {
 public:
  struct Options {
    CloudAddress cloud;
    ModelProof proof;
    std::size_t most_runs = 4;      // at a time, beside those of one token behind a cut
    Nanos silence = 5'000'000'000;  // the longest, of what the cloud answers at once
  };
  // Told of each run that failed by more than its own fault, before it is told itself.
  using OnTrouble = std::function<void(const Status& why)>;
  // An answer has told the cloud's load.
  using OnLoad = std::function<void()>;

  // All must outlive it.
  CloudSource(HttpClient& client, const Clock& clock, Options options, OnTrouble on_trouble,
              OnLoad on_load = {});
  ~CloudSource() override;

  Stop Start(const RunAsk& ask, RunEvents events) override;

  // Tells the cloud what the answer of the run of that name may go on with, and calls with what it
  // says of the guesses so far; with nothing if it does not know, and the run goes on without.
  using OnVerdict = std::function<void(const std::optional<DraftVerdict>& verdict)>;
  // What tokens of a run take that has drafts is no measurement of the cloud alone.
  void Offer(const DraftOffer& offer, OnVerdict on_verdict);

  // Rows of the prompt of the run with a cut of that name, as docs/formats/states.md has them;
  // calls once they are through the cloud's layers, which may take as long as others are before
  // them. That it fails is not told as trouble: whether the cloud is there, the run itself hears.
  // With a retry_after() there was no room for them, and they may be sent again.
  using OnReceipt = std::function<void(const Result<StatesReceipt>& receipt)>;
  Stop SendStates(std::uint64_t name, std::span<const std::byte> message, OnReceipt on_receipt);

  // Whether it is there, and what it says of itself. kFailedPrecondition: it is not one for this
  // end.
  void AskHello(std::function<void(const Result<CloudHello>& hello)> on_hello);
  // One that fits, and how long it was on its way.
  void OnHello(const CloudHello& hello, double round_trip_seconds);

  // Gives up those that are silent.
  void OnTime() { talks_.OnTime(); }

  // Of a new answer.
  std::optional<PlaceCosts> Costs() const;
  // Of these the wait for prompts that are read before.
  double ReadsSeconds() const { return state_->queue.ReadsSeconds(clock_.Now()); }
  // What it has answered for this end. Who knows that it has begun anew has it forget.
  KnownPrefixes& known() { return state_->known; }
  std::size_t runs() const { return state_->runs; }
  // Whether a hello has said what it has.
  bool is_known() const { return state_->is_known; }
  // For another run than of one token behind a cut.
  bool has_room() const { return state_->runs - state_->cut_runs < options_.most_runs; }
  std::uint64_t bytes_sent() const { return state_->bytes_sent; }
  std::uint64_t bytes_received() const { return state_->bytes_received; }

 private:
  Stop Ask(std::string method, std::string path, std::string body,
           std::function<void(const Result<std::string>& body)> on_answer, bool is_patient = false);

  class Run;
  struct State {  // that runs share
    PlaceMeter meter;
    CloudQueue queue;
    KnownPrefixes known;
    bool is_known = false;
    std::uint32_t sequences = 1;  // of the cloud
    double round_trip_seconds = 0;
    std::uint64_t bytes_sent = 0, bytes_received = 0;  // of bodies
    std::size_t runs = 0;
    std::size_t cut_runs = 0;  // of these: of one token behind a cut
    std::map<std::uint64_t, Run*> named;
    OnTrouble on_trouble;
    OnLoad on_load;  // may be null
  };

  static void Note(State& state, const CloudLoad& load, Nanos now);

  HttpClient& client_;
  const Clock& clock_;
  const Options options_;
  const std::shared_ptr<State> state_;
  CloudTalks talks_;
};

}  // namespace troupe
