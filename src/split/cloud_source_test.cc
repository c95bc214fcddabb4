// The cloud's talk over real sockets, against servers that say what a test wants.
#include "split/cloud_source.h"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <set>
#include <string>
#include <vector>

#include "base/mutex.h"
#include "server/http/http_server.h"
#include "split/wire/cloud_line.h"

namespace troupe {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

class CloudSourceTest : public testing::Test {
 protected:
  void SetUp() override {
    auto server = HttpServer::Listen({.port = 0, .certificate = "", .key = ""},
                                     {.handle = [this](HttpRequest request, HttpReplyPtr reply) {
                                       asked_ = request;
                                       answer_(*reply);
                                       const MutexLock lock(mu_);
                                       kept_ = reply;
                                     }});
    ASSERT_TRUE(server.ok()) << server.status().ToString();
    server_ = *std::move(server);
    source_.emplace(client_, clock_,
                    CloudSource::Options{
                        .cloud = {.url = ParseHttpUrl(server_->Address()).value(), .key = "k1"},
                        .proof = {.model = {1, 2}, .arithmetic = 3},
                        .most_runs = 1,
                        .silence = 100'000'000},
                    [this](const Status& why) { troubles_.push_back(why); });
  }

  // The last reply, which a thread of the server keeps.
  HttpReplyPtr Kept() {
    const MutexLock lock(mu_);
    return kept_;
  }

  // Lets the server say this, and gives what the run made of it.
  void Run(std::string body, int status = 200) {
    answer_ = [body, status](HttpReply& reply) {
      if (status != 200) return reply.Send({.status = status, .body = body});
      reply.Begin({});
      reply.Write(body);
      reply.End();
    };
    Start();
    client_.Run();
  }
  TokenSource::Stop Start() {
    return source_->Start(
        {.request = {.prompt = std::vector<TokenId>{7}, .begun = {5}}, .drafts = 11},
        {.on_heard = [this] { ++heard_; },
         .on_read = {},
         .on_tokens =
             [this](std::span<const TokenId> tokens) {
               tokens_.insert(tokens_.end(), tokens.begin(), tokens.end());
             },
         .on_end = [this](FinishReason reason, const Usage&) { end_ = reason; },
         .on_failure = [this](const Status& why) { failure_ = why; }});
  }

  HttpClient client_{{.silence = std::chrono::milliseconds(5000), .kept_connections = 2}};
  MonotonicClock clock_;
  std::function<void(HttpReply&)> answer_;
  HttpRequest asked_;
  Mutex mu_;
  HttpReplyPtr kept_ TROUPE_GUARDED_BY(mu_);
  std::unique_ptr<HttpServer> server_;
  std::optional<CloudSource> source_;
  int heard_ = 0;
  std::vector<TokenId> tokens_;
  std::optional<FinishReason> end_;
  std::optional<Status> failure_;
  std::vector<Status> troubles_;
};

constexpr const char* kEnd =
    R"({"end":"end","read":10,"queue_s":0,"read_s":0.5,"decode_s":1,)"
    R"("load":{"under_way":3,"to_read":100,"answer_s":0.5,"read_s":0.05,"token_s":0}})";

TEST_F(CloudSourceTest, TellsTokensAndTheEndAndMeasuresWhatTheyTook) {
  Run(std::string("[]\n[1,2]\n[3]\n") + kEnd + "\n");
  EXPECT_THAT(tokens_, ElementsAre(1, 2, 3));
  EXPECT_EQ(heard_, 1);
  EXPECT_EQ(end_, FinishReason::kEndToken);
  EXPECT_EQ(failure_, std::nullopt);
  EXPECT_THAT(troubles_, IsEmpty());
  EXPECT_EQ(asked_.path, "/split/answers");
  EXPECT_EQ(asked_.Header("authorization"), "Bearer k1");
  EXPECT_THAT(asked_.body, HasSubstr("\"begun\":[5]"));
  EXPECT_DOUBLE_EQ(source_->Costs()->read_seconds, 0.05);
  EXPECT_NEAR(source_->Costs()->wait_seconds, 5, 0.5) << "100 tokens of others are read before";
  EXPECT_GT(source_->bytes_sent(), 100u);
  EXPECT_GT(source_->bytes_received(), 60u);
}

TEST_F(CloudSourceTest, ACloudThatHasReadMoreThanWasBelievedHasLostWhatItHadKept) {
  std::size_t read = 0;
  answer_ = [&](HttpReply& reply) {
    reply.Begin({});
    reply.Write("[1]\n" + Encode(CloudEnd{.read = read}));
    reply.End();
  };
  struct Case {
    std::size_t begun = 0, kept = 0, read = 0;
    bool has_lost = false;
  };
  for (const Case& one :
       {Case{.read = 100}, Case{.kept = 80, .read = 20},
        Case{.kept = 80, .read = 36},  // the last tile may be another
        Case{.kept = 80, .read = 37, .has_lost = true},
        Case{.kept = 80, .read = 68, .has_lost = true},  // it has the first 32
        Case{.kept = 80, .read = 100, .has_lost = true}, Case{.begun = 70, .kept = 80, .read = 20},
        Case{.begun = 70, .kept = 80, .read = 68, .has_lost = true}}) {
    read = one.read;
    source_->known().Remember("", std::vector<TokenId>(40, 9));
    bool is_over = false;
    Request request{.prompt = std::vector<TokenId>(100, 7),
                    .begun = std::vector<TokenId>(one.begun, 5)};
    request.max_tokens = 200;
    (void)source_->Start({.request = std::move(request), .kept = one.kept},
                         {.on_heard = [] {},
                          .on_tokens = [](std::span<const TokenId>) {},
                          .on_end = [&](FinishReason, const Usage&) { is_over = true; },
                          .on_failure = [](const Status& why) { ADD_FAILURE() << why.message(); }});
    client_.Run();
    EXPECT_TRUE(is_over);
    EXPECT_EQ(source_->known().texts(), one.has_lost ? 0u : 1u)
        << one.read << " read, where " << one.kept << " were kept, behind " << one.begun;
  }
}

TEST_F(CloudSourceTest, ARunThatWaitsKnowsForHowLongUntilItIsRead) {
  std::vector<RunLeft> seen;
  answer_ = [](HttpReply& reply) {
    reply.Begin({});
    reply.Write("{\"wait_s\":5}\n");
  };
  const auto left = std::make_shared<RunLeft>();
  const TokenSource::Stop stop =
      source_->Start({.request = {.prompt = std::vector<TokenId>(40, 7)}, .left = left},
                     {.on_heard = [&] { seen.push_back(*left); },
                      .on_tokens = [](std::span<const TokenId>) {},
                      .on_failure = [](const Status& why) { ADD_FAILURE() << why.message(); }});
  EXPECT_FALSE(left->begun);
  client_.After(std::chrono::milliseconds(50), [&] { Kept()->Write("[]\n"); });
  client_.After(std::chrono::milliseconds(80), [&] { stop(); });
  const Nanos now = clock_.Now();
  client_.Run();
  ASSERT_EQ(seen.size(), 2u);
  EXPECT_FALSE(seen[0].begun);
  EXPECT_NEAR(static_cast<double>(seen[0].begins_at - now) * 1e-9, 5, 0.5);
  EXPECT_TRUE(seen[1].begun);
}

TEST_F(CloudSourceTest, OffersADraftOfARunAndHearsWhatBecameOfIt) {
  std::vector<std::optional<DraftVerdict>> heard;
  const auto offer = [&](std::string body, int status) {
    answer_ = [body, status](HttpReply& reply) { reply.Send({.status = status, .body = body}); };
    source_->Offer({.drafts = 11, .number = 2, .from = 3, .tokens = {7, 8}},
                   [&](const std::optional<DraftVerdict>& verdict) { heard.push_back(verdict); });
    client_.Run();
  };
  offer(R"({"checked":5,"right":4})", 200);
  EXPECT_EQ(asked_.path, "/split/drafts");
  EXPECT_EQ(asked_.Header("authorization"), "Bearer k1");
  EXPECT_EQ(ReadJson<DraftOffer>("offer", asked_.body, ReadDraftOffer)->tokens,
            (std::vector<TokenId>{7, 8}));
  offer("{}", 200);
  offer(R"({"error":{"message":"gone"}})", 404);
  EXPECT_THAT(heard,
              ElementsAre(DraftVerdict{.checked = 5, .right = 4}, std::nullopt, std::nullopt));
  EXPECT_THAT(troubles_, IsEmpty()) << "an answer goes on without drafts";
}

TEST_F(CloudSourceTest, ARunWithDraftsSaysNothingOfTheCloudAlone) {
  std::string tokens = "[1";
  for (int i = 2; i <= 20; ++i) tokens += "," + std::to_string(i);
  const auto stream = [&](HttpReply& reply) {
    reply.Begin({});
    reply.Write("[0]\n");
    reply.Write(tokens + "]\n" + kEnd + "\n");
    reply.End();
  };
  answer_ = stream;
  Start();
  source_->Offer({.drafts = 11}, [](const std::optional<DraftVerdict>&) {});
  client_.Run();
  EXPECT_EQ(tokens_.size(), 21u);
  EXPECT_EQ(source_->Costs(), std::nullopt) << "no token was chosen without drafts";
  Start();
  client_.Run();
  EXPECT_TRUE(source_->Costs().has_value());
}

TEST_F(CloudSourceTest, ACloudThatSaysItIsLoadedIsNotAsFastAsItsLastAnswerWas) {
  CloudHello hello{.sequences = 4, .load = {.read_seconds = 0.01, .token_seconds = 100}};
  source_->OnHello(hello, 0);
  Run(fmt::format("[1]\n[2]\n{}\n", kEnd));  // at once
  const double idle = source_->Costs()->token_seconds;
  EXPECT_LT(idle, 100);
  hello.load.token_seconds = 1000;
  source_->OnHello(hello, 0);
  EXPECT_NEAR(source_->Costs()->token_seconds, 10 * idle, 1e-6);
}

TEST_F(CloudSourceTest, AStreamThatEndsWithoutAnEndIsAFailureBehindTheTokensThatCame) {
  Run("[1,2]\n");
  EXPECT_THAT(tokens_, ElementsAre(1, 2));
  EXPECT_EQ(failure_->code(), Code::kDataLoss);
  EXPECT_EQ(troubles_.size(), 1u);
}

TEST_F(CloudSourceTest, WhatIsNoLineEndsTheRun) {
  Run("[1]\nhello\n[2]\n");
  EXPECT_THAT(tokens_, ElementsAre(1));
  EXPECT_THAT(failure_->message(), HasSubstr("a line of the cloud"));
}

TEST_F(CloudSourceTest, ACloudThatGivesUpSaysWhy) {
  Run("[1]\n{\"error\":{\"code\":15,\"message\":\"an expert cannot be read\"}}\n");
  EXPECT_EQ(*failure_, DataLoss("an expert cannot be read"));
  EXPECT_EQ(end_, std::nullopt);
}

TEST_F(CloudSourceTest, TheLoadBehindAnAnswerIsWithoutIt) {
  // Three are there of others; this end's one has ended, and the cloud has one sequence.
  Run(std::string("[1,2]\n") + R"({"end":"end","read":10,"queue_s":0,"read_s":0.5,"decode_s":1,)" +
      R"("load":{"under_way":3,"to_read":0,"answer_s":10,"read_s":0.05,"token_s":0.1}})" + "\n");
  EXPECT_DOUBLE_EQ(source_->Costs()->wait_seconds, 30);
}

TEST_F(CloudSourceTest, TellsARefusalFromACloudThatIsBusy) {
  Run(R"({"error":{"message":"the end has another model"}})", 409);
  EXPECT_EQ(failure_->code(), Code::kFailedPrecondition);
  EXPECT_THAT(failure_->message(), HasSubstr("another model"));
  Run("", 401);
  EXPECT_THAT(failure_->message(), HasSubstr("key"));
  Run(R"({"error":{"message":"no more can wait"}})", 429);
  EXPECT_EQ(failure_->code(), Code::kResourceExhausted);
  Run("", 413);
  EXPECT_EQ(failure_->code(), Code::kResourceExhausted) << "a shorter one may be answered";
  Run("what\n?", 500);
  EXPECT_EQ(failure_->message(), "the cloud answers 500: what");
}

TEST_F(CloudSourceTest, RowsThatWaitForTheirPassOrAreRefusedSayNothingOfTheCloud) {
  std::optional<Result<StatesReceipt>> receipt;
  const std::vector<std::byte> rows(100);
  const auto send = [&] {
    return source_->SendStates(7, rows, [&](const auto& heard) { receipt = heard; });
  };
  answer_ = [](HttpReply&) {};
  send();
  client_.After(std::chrono::milliseconds(300), [&] {
    source_->OnTime();
    Kept()->Send({.body = Encode(StatesReceipt{.rows = 3})});
  });
  client_.Run();
  ASSERT_TRUE(receipt && receipt->ok()) << receipt->status().ToString();
  EXPECT_EQ((*receipt)->rows, 3u);
  for (const auto& [status, code] :
       {std::pair(404, Code::kFailedPrecondition), std::pair(500, Code::kUnavailable),
        std::pair(503, Code::kResourceExhausted)}) {
    answer_ = [status = status](HttpReply& reply) { reply.Send({.status = status}); };
    send();
    client_.Run();
    EXPECT_EQ(receipt->status().code(), code) << status;
    EXPECT_EQ(receipt->status().retry_after() > 0, status == 503) << status;
  }
  answer_ = [](HttpReply& reply) {
    reply.Send({.status = 429, .headers = {{"Retry-After", "2"}}});
  };
  send();
  client_.Run();
  EXPECT_EQ(receipt->status().retry_after(), 2) << "as it says";
  receipt.reset();
  answer_ = [](HttpReply&) {};
  client_.After(std::chrono::milliseconds(100), send());
  client_.Run();
  EXPECT_FALSE(receipt) << "it was stopped";
  server_.reset();
  send();
  client_.Run();
  EXPECT_EQ(receipt->status().code(), Code::kUnavailable) << "nobody has refused them";
  EXPECT_THAT(troubles_, IsEmpty());
}

TEST_F(CloudSourceTest, ARunThatIsSilentIsGivenUpAndThatIsTrouble) {
  answer_ = [](HttpReply& reply) { reply.Begin({}); };
  Start();
  client_.After(std::chrono::milliseconds(300), [&] { source_->OnTime(); });
  client_.Run();
  EXPECT_EQ(failure_->code(), Code::kDeadlineExceeded);
  EXPECT_EQ(troubles_.size(), 1u);
  EXPECT_EQ(source_->runs(), 0u);
}

TEST_F(CloudSourceTest, WhereAConnectionIsDeadTheNextRequestHasANewOne) {
  std::set<std::string> peers;  // each connection lives for one request
  answer_ = [&](HttpReply& reply) {
    const CloudHello hello{.proof = {.model = {1, 2}, .arithmetic = 3}, .context = 64};
    if (peers.insert(asked_.peer).second) reply.Send({.body = Encode(hello)});
  };
  std::vector<Code> heard;
  // Who is not to be given up has as long as the client waits.
  const auto ask = [&](int times, bool is_given_up) {
    heard.clear();
    for (int i = 0; i < times; ++i) {
      source_->AskHello([&](const auto& hello) { heard.push_back(hello.status().code()); });
    }
    if (is_given_up) client_.After(std::chrono::milliseconds(300), [&] { source_->OnTime(); });
    client_.Run();
    return heard;
  };
  EXPECT_THAT(ask(2, false), ElementsAre(Code::kOk, Code::kOk));
  EXPECT_THAT(ask(1, true), ElementsAre(Code::kDeadlineExceeded));
  EXPECT_THAT(ask(1, false), ElementsAre(Code::kOk));
}

TEST_F(CloudSourceTest, ACutThatTheCloudGivesUpIsNoTroubleOfTheCloud) {
  answer_ = [](HttpReply& reply) {
    reply.Begin({});
    reply.Write("{\"error\":{\"code\":8,\"message\":\"the rows came too late\"}}\n");
    reply.End();
  };
  for (const bool is_cut : {true, false}) {
    RunAsk ask{.request = {.prompt = std::vector<TokenId>{7}}};
    if (is_cut) ask.cut = CutAsk{.name = 7, .layer = 3};
    (void)source_->Start(ask, {.on_failure = [this](const Status& why) { failure_ = why; }});
    client_.Run();
    EXPECT_EQ(failure_->code(), Code::kResourceExhausted);
    EXPECT_THAT(troubles_, IsEmpty());
  }
}

TEST_F(CloudSourceTest, WhatAnAnswerFailsByIsNoTroubleOfTheCloudUnlessItIsTheClouds) {
  const auto fail = [&](Code code) {
    troubles_.clear();
    Run("[1]\n" + Encode(CloudFailure{Status(code, "so it is")}));
    EXPECT_EQ(failure_->code(), code);
    return troubles_.size();
  };
  for (const Code code : {Code::kDeadlineExceeded, Code::kInvalidArgument, Code::kCancelled,
                          Code::kResourceExhausted, Code::kUnimplemented}) {
    EXPECT_EQ(fail(code), 0u) << static_cast<int>(code);
  }
  for (const Code code : {Code::kUnavailable, Code::kInternal, Code::kDataLoss}) {
    EXPECT_EQ(fail(code), 1u) << static_cast<int>(code);
  }
}

TEST_F(CloudSourceTest, WhoIsStoppedSaysNothingMoreAndMakesRoom) {
  answer_ = [](HttpReply& reply) {
    reply.Begin({});
    reply.Write("[1]\n");
  };
  TokenSource::Stop stop;
  std::optional<Status> full;
  stop = Start();
  (void)source_->Start({.request = {.prompt = std::vector<TokenId>{7}}},
                       {.on_failure = [&](const Status& why) { full = why; }});
  client_.After(std::chrono::milliseconds(200), [&] { stop(); });
  client_.Run();
  EXPECT_THAT(tokens_, ElementsAre(1));
  EXPECT_EQ(failure_, std::nullopt);
  EXPECT_EQ(full->code(), Code::kResourceExhausted);
  Run(std::string(kEnd) + "\n");
  EXPECT_EQ(end_, FinishReason::kEndToken) << "a run has its place again";
}

// As of each answer that ends by its length: the end knows that before the cloud says so.
TEST_F(CloudSourceTest, WhoIsStoppedWithAllOfItsTokensStillHearsTheLoadAndKeepsTheConnection) {
  answer_ = [](HttpReply& reply) {
    reply.Begin({});
    reply.Write(std::string("[1]\n") + kEnd + "\n");
    reply.End();
  };
  for (int round = 0; round < 3; ++round) {
    TokenSource::Stop stop;
    Request request{.prompt = std::vector<TokenId>{7}, .begun = {5}};
    request.max_tokens = 2;
    stop =
        source_->Start({.request = std::move(request)},
                       {.on_tokens = [&](std::span<const TokenId>) { stop(); },
                        .on_end = [](FinishReason, const Usage&) { ADD_FAILURE(); },
                        .on_failure = [](const Status& why) { ADD_FAILURE() << why.message(); }});
    client_.Run();
    EXPECT_EQ(source_->runs(), 0u);
    EXPECT_NEAR(source_->ReadsSeconds(), 5, 0.5) << "100 tokens of others";
  }
  EXPECT_THAT(troubles_, IsEmpty());
  EXPECT_EQ(server_->counters().requests, 3u);
  EXPECT_EQ(server_->counters().accepted, 1u);
}

TEST_F(CloudSourceTest, AStopFromWithinAnEventIsTheLastOfIt) {
  answer_ = [](HttpReply& reply) {
    reply.Begin({});
    reply.Write("[1]\n[2]\n");
    reply.End();
  };
  TokenSource::Stop stop;
  std::vector<TokenId> seen;
  const auto fail = [](const Status& why) { ADD_FAILURE() << why.message(); };
  stop = source_->Start({.request = {.prompt = std::vector<TokenId>{7}}},
                        {.on_tokens =
                             [&](std::span<const TokenId> tokens) {
                               seen.push_back(tokens[0]);
                               stop();
                             },
                         .on_failure = fail});
  client_.Run();
  EXPECT_THAT(seen, ElementsAre(1));
}

}  // namespace
}  // namespace troupe
