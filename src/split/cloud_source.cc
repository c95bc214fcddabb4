#include "split/cloud_source.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdlib>
#include <optional>
#include <utility>
#include <variant>

#include "server/http/error_message.h"
#include "split/wire/cloud_line.h"
#include "split/wire/cloud_request.h"

namespace troupe {
namespace {

constexpr std::size_t kMostOfError = 4096, kMostOfMessage = 300;
constexpr std::size_t kMostOfBody = 1 << 16;  // of what is asked beside runs
constexpr double kLongestWait = 1e6;          // seconds; whatever the cloud says
constexpr double kSoon = 0.05;                // seconds, where a cloud without room says no time

// It has no sequence in the cloud, and takes the place of none.
bool IsBeside(const RunAsk& ask) { return ask.cut && ask.cut->prefix == 0; }

// Of what it says that an answer has failed by. Anything else is this answer's alone, such as a
// deadline that has passed or a text that is too long: the cloud lives and answers others.
bool IsTroubleOfTheCloud(const Status& why) {
  return why.code() == Code::kUnavailable || why.code() == Code::kInternal ||
         why.code() == Code::kDataLoss;
}

// What has come back beside runs.
struct Heard {
  int status = 0;
  std::string retry_after, body;

  Status Judge() const {
    constexpr int kTooMany = 429, kBusy = 503;
    const Status why = JudgeCloud(status, body);
    if (status != kTooMany && status != kBusy) return why;
    const double seconds = std::strtod(retry_after.c_str(), nullptr);
    return Status(why).WithRetryAfter(seconds > 0 ? std::min(seconds, kLongestWait) : kSoon);
  }
};

std::string MessageIn(std::string_view body) {
  return InOneLine(ErrorMessageIn(body).substr(0, kMostOfMessage));
}

}  // namespace

HttpHeaders HeadersFor(const CloudAddress& cloud) {
  HttpHeaders headers = {{"Content-Type", "application/json"}};
  if (!cloud.key.empty()) headers.emplace_back("Authorization", "Bearer " + cloud.key);
  return headers;
}

Status JudgeCloud(int status, std::string_view body) {
  constexpr int kOk = 200, kBadRequest = 400, kUnauthorized = 401, kForbidden = 403,
                kNotFound = 404, kConflict = 409, kTooLong = 413, kTooMany = 429, kBusy = 503;
  switch (status) {
    case kOk:
      return OkStatus();
    case kUnauthorized:
    case kForbidden:
      return Error(Code::kFailedPrecondition, "the cloud does not take the key");
    case kNotFound:
    case kConflict:
      return Error(Code::kFailedPrecondition, "the cloud refuses: {}", MessageIn(body));
    case kBadRequest:
    case kTooLong:
    case kTooMany:
    case kBusy:
      return Error(Code::kResourceExhausted, "not in the cloud: {}", MessageIn(body));
    default:
      return Error(Code::kUnavailable, "the cloud answers {}: {}", status, MessageIn(body));
  }
}

class CloudSource::Run : public std::enable_shared_from_this<CloudSource::Run> {
 public:
  Run(std::shared_ptr<State> state, const Clock& clock, const RunAsk& ask, RunEvents events)
      : state_(std::move(state)),
        clock_(clock),
        name_(ask.drafts),
        is_cut_(ask.cut.has_value()),
        is_beside_(IsBeside(ask)),
        left_(ask.left ? ask.left : std::make_shared<RunLeft>()),
        prompt_tokens_(is_cut_ ? 0 : TokensToRead(ask)),
        kept_(is_cut_ ? 0 : PromptTokensOf(ask.request) - prompt_tokens_),
        begun_(std::min(prompt_tokens_, ask.request.begun.size())),
        wanted_(ask.request.max_tokens -
                std::min(ask.request.max_tokens, ask.request.begun.size())),
        events_(std::move(events)),
        start_(clock.Now()) {
    ++state_->runs;
    if (is_beside_) ++state_->cut_runs;
    if (name_) state_->named[*name_] = this;
  }
  ~Run() { End(); }

  void Begin(CloudTalks& talks, const CloudAddress& cloud, std::string body) {
    state_->bytes_sent += body.size();
    BeginsIn(state_->queue.WaitSeconds(state_->runs - 1, state_->sequences, start_));
    state_->queue.OnSent(prompt_tokens_, start_);
    is_sent_ = true;
    const auto self = shared_from_this();
    cancel_ = talks.Start(
        cloud.url,
        {.method = "POST",
         .path = "/split/answers",
         .headers = HeadersFor(cloud),
         .body = std::move(body)},
        {.on_head = [self](const HttpResponse& head) { self->status_ = head.status; },
         .on_piece = [self](std::string_view piece) { self->OnPiece(piece); },
         .on_end =
             [self](const Status& status) {
               Status why = status.ok() ? JudgeCloud(self->status_, self->error_) : status;
               if (why.ok()) why = DataLoss("the cloud's answer has no end");
               self->Fail(why);
             }});
  }

  void HasDrafts() { has_drafts_ = true; }

  void Stop() {
    if (ended_) return;
    // With all of its tokens it ends there, too: the last line, which tells the cloud's load, is on
    // its way, and the connection serves others.
    if (tokens_ >= wanted_) return End();
    Measure({});
    Close();
  }

  void Fail(const Status& why) {
    if (ended_) return;
    End();
    state_->on_trouble(why);
    events_.on_failure(why);
  }

 private:
  void End() {
    if (std::exchange(ended_, true)) return;
    if (is_sent_ && !left_->begun) state_->queue.OnTakenBack(prompt_tokens_, clock_.Now());
    --state_->runs;
    if (is_beside_) --state_->cut_runs;
    if (name_) state_->named.erase(*name_);
  }
  void Close() {
    End();
    closed_ = true;
    if (cancel_) cancel_();
  }

  void OnPiece(std::string_view piece) {
    state_->bytes_received += piece.size();
    constexpr int kOk = 200;
    if (status_ != kOk) {
      error_ += piece.substr(0, kMostOfError - std::min(kMostOfError, error_.size()));
      return;
    }
    const Result<std::vector<std::string>> lines = lines_.Take(piece);
    if (!lines.ok()) return Break(lines.status());
    for (const std::string& text : *lines) {
      if (closed_) return;
      const Result<CloudLine> line = DecodeCloudLine(text);
      if (!line.ok()) return Break(line.status());
      OnLine(*line);
    }
  }

  // It talks, but not as it should, or says that it gives up.
  void Break(const Status& why, bool is_trouble = true) {
    const auto self = shared_from_this();
    if (ended_) return;
    Close();
    if (is_trouble) state_->on_trouble(why);
    events_.on_failure(why);
  }

  void OnLine(const CloudLine& line) {
    const auto self = shared_from_this();  // an event may let go of it
    if (const auto* const end = std::get_if<CloudEnd>(&line)) return OnLastLine(*end);
    if (ended_) return;
    if (const auto* const some = std::get_if<CloudTokens>(&line)) {
      left_->begun = true;
      if (some->tokens.empty()) return events_.on_heard();
      last_token_ = clock_.Now();
      if (tokens_ == 0) {
        first_token_ = last_token_;
        told_token_seconds_ = state_->meter.told_token_seconds();
      }
      tokens_ += some->tokens.size();
      events_.on_tokens(some->tokens);
    } else if (const auto* const wait = std::get_if<CloudWait>(&line)) {
      BeginsIn(wait->seconds);
      events_.on_heard();
    } else if (std::holds_alternative<CloudReady>(line)) {
      if (events_.on_ready) events_.on_ready();
    } else {
      // That of a cut may be the end's doing.
      const Status& why = std::get<CloudFailure>(line).status;
      Break(why, !is_cut_ && IsTroubleOfTheCloud(why));
    }
  }

  void OnLastLine(const CloudEnd& end) {
    left_->begun = true;  // also where the first token has ended it
    Measure(end);
    const bool is_told = !ended_;
    End();
    // It has no cache, or has lost what was in it. Of the answer's own tokens it tells nothing.
    if (kept_ > 0 && end.read > prompt_tokens_ - begun_ + KnownPrefixes::kTile) {
      state_->known.Forget();
    }
    Note(*state_, end.load, clock_.Now());
    if (state_->on_load) state_->on_load();
    if (is_told) events_.on_end(end.reason, {});
  }

  static double Seconds(Nanos nanos) { return static_cast<double>(nanos) * 1e-9; }

  void BeginsIn(double seconds) {
    left_->begins_at = clock_.Now() + static_cast<Nanos>(std::min(seconds, kLongestWait) * 1e9);
  }

  // What the cloud tells of itself, and what has come here.
  void Measure(const CloudEnd& told) {
    // Of what was read behind a cut, cut_plan.h's meter knows.
    if (tokens_ == 0 || is_beside_) return;
    const double there = told.queue_seconds + told.read_seconds;
    const double first = Seconds(first_token_ - start_);
    const double rest = Seconds(last_token_ - first_token_);
    MeasuredAnswer measured{.tokens = has_drafts_ ? 0 : tokens_ - 1,
                            .token_seconds = rest,
                            .told_token_seconds = told_token_seconds_};
    if (!is_cut_ && there > 0) measured.link_seconds = std::max(0.0, first - there);
    state_->meter.OnAnswer(measured);
  }

  const std::shared_ptr<State> state_;
  const Clock& clock_;
  const std::optional<std::uint64_t> name_;
  const bool is_cut_, is_beside_;
  const std::shared_ptr<RunLeft> left_;
  const std::size_t prompt_tokens_, kept_;  // to be read there, and those believed to be there
  const std::size_t begun_;                 // of those to be read, of its answer
  const std::size_t wanted_;                // of its answer, at most
  const RunEvents events_;
  const Nanos start_;
  HttpClient::Cancel cancel_;
  bool is_sent_ = false;
  bool ended_ = false;   // nothing is told of it any more
  bool closed_ = false;  // nothing is heard of it any more
  bool has_drafts_ = false;
  int status_ = 0;
  std::string error_;  // the body of what is not 200
  CloudLines lines_;
  std::size_t tokens_ = 0;
  Nanos first_token_ = 0, last_token_ = 0;
  double told_token_seconds_ = 0;  // by the cloud, as of the first token
};

CloudSource::CloudSource(HttpClient& client, const Clock& clock, Options options,
                         OnTrouble on_trouble, OnLoad on_load)
    : client_(client),
      clock_(clock),
      options_(std::move(options)),
      state_(std::make_shared<State>()),
      talks_(client, clock, options_.silence) {
  state_->on_trouble = std::move(on_trouble);
  state_->on_load = std::move(on_load);
}

CloudSource::~CloudSource() = default;

TokenSource::Stop CloudSource::Start(const RunAsk& ask, RunEvents events) {
  const bool is_full = !IsBeside(ask) && !has_room();
  const auto run = std::make_shared<Run>(state_, clock_, ask, std::move(events));
  if (is_full) {
    client_.Post([run] {
      run->Fail(Error(Code::kResourceExhausted, "as many answers are in the cloud as may be"));
    });
  } else {
    run->Begin(talks_, options_.cloud,
               Encode(CloudRequest{.proof = options_.proof,
                                   .request = ask.request,
                                   .drafts = ask.drafts,
                                   .cut = ask.cut}));
  }
  return [run] { run->Stop(); };
}

void CloudSource::Offer(const DraftOffer& offer, OnVerdict on_verdict) {
  if (const auto run = state_->named.find(offer.drafts); run != state_->named.end()) {
    run->second->HasDrafts();
  }
  Ask("POST", "/split/drafts", Encode(offer),
      [on_verdict = std::move(on_verdict)](const Result<std::string>& body) {
        const Result<DraftVerdict> verdict =
            body.ok() ? DecodeDraftVerdict(*body) : Result<DraftVerdict>(body.status());
        on_verdict(verdict.ok() ? std::optional(*verdict) : std::nullopt);
      });
}

TokenSource::Stop CloudSource::SendStates(std::uint64_t name, std::span<const std::byte> message,
                                          OnReceipt on_receipt) {
  std::string body(reinterpret_cast<const char*>(message.data()), message.size());
  return Ask(
      "POST", fmt::format("/split/states/{}", name), std::move(body),
      [on_receipt = std::move(on_receipt)](const Result<std::string>& answer) {
        if (answer.ok()) return on_receipt(DecodeStatesReceipt(*answer));
        on_receipt(answer.status());
      },
      /*is_patient=*/true);
}

void CloudSource::AskHello(std::function<void(const Result<CloudHello>& hello)> on_hello) {
  Ask("GET", "/split/hello", "", [on_hello = std::move(on_hello)](const Result<std::string>& body) {
    if (!body.ok()) return on_hello(body.status());
    const Result<CloudHello> hello = DecodeCloudHello(*body);
    // Whoever it is, it is no cloud of this version.
    on_hello(hello.ok() ? hello : Error(Code::kFailedPrecondition, "{}", hello.status().message()));
  });
}

void CloudSource::OnHello(const CloudHello& hello, double round_trip_seconds) {
  state_->is_known = true;
  state_->sequences = hello.sequences;
  state_->round_trip_seconds = round_trip_seconds;
  Note(*state_, hello.load, clock_.Now());
}

void CloudSource::Note(State& state, const CloudLoad& load, Nanos now) {
  state.queue.OnTold(load, state.runs, state.round_trip_seconds, now);
  state.meter.OnTold(load.read_seconds, load.token_seconds);
}

std::optional<PlaceCosts> CloudSource::Costs() const {
  return state_->meter.Costs(
      state_->queue.WaitSeconds(state_->runs, state_->sequences, clock_.Now()));
}

TokenSource::Stop CloudSource::Ask(std::string method, std::string path, std::string body,
                                   std::function<void(const Result<std::string>& body)> on_answer,
                                   bool is_patient) {
  const auto heard = std::make_shared<Heard>();
  state_->bytes_sent += body.size();
  return talks_.Start(options_.cloud.url,
                      {.method = std::move(method),
                       .path = std::move(path),
                       .headers = HeadersFor(options_.cloud),
                       .body = std::move(body)},
                      {.on_head =
                           [heard](const HttpResponse& head) {
                             heard->status = head.status;
                             heard->retry_after = HeaderOf(head.headers, "retry-after");
                           },
                       .on_piece =
                           [heard, state = state_](std::string_view piece) {
                             state->bytes_received += piece.size();
                             heard->body += piece.substr(0, kMostOfBody - heard->body.size());
                           },
                       .on_end =
                           [heard, on_answer = std::move(on_answer)](const Status& status) {
                             const Status why = status.ok() ? heard->Judge() : status;
                             on_answer(why.ok() ? Result<std::string>(heard->body) : why);
                           }},
                      is_patient);
}

}  // namespace troupe
