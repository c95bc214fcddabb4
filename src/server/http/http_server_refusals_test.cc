// Requests that no handler sees: what is no HTTP, what is too long, and who may not ask.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <future>
#include <string>

#include "server/http/http_server_for_test.h"

namespace troupe {
namespace {

using testing::AllOf;
using testing::EndsWith;
using testing::HasSubstr;
using testing::StartsWith;

TEST_F(HttpServerTest, WhatIsNoHttpGetsAnErrorAndIsClosed) {
  for (const char* bytes : {"GET\r\n\r\n", "GET / HTTP/9.9\r\n\r\n", "\x16\x03\x01\x02",
                            "POST / HTTP/1.1\r\nContent-Length: -1\r\n\r\n",
                            "POST / HTTP/1.1\r\nContent-Length: 1\r\nContent-Length: 2\r\n\r\n",
                            "GET / HTTP/1.1\r\nA b: c\r\n\r\n"}) {
    Wire wire = Connect();
    wire.Say(bytes);
    wire.Say(std::string(200, 'x'));
    EXPECT_THAT(wire.ReadAll(), StartsWith("HTTP/1.1 400 ")) << bytes;
  }
  EXPECT_EQ(server_->counters().malformed, 6u);
}

TEST_F(HttpServerTest, WhatIsNoRequestBehindOneIsRefusedAfterItsAnswer) {
  Wire wire = Connect();
  wire.Say(Get("/stream") + "no request\r\n\r\n");
  wire.ReadUntil("data: 1\n\n");
  Kept()->Write("data: 2\n\n");
  Kept()->End();
  Forget();
  EXPECT_THAT(wire.ReadAll(), testing::ContainsRegex("data: 2(.|\n|\r)*HTTP/1.1 400 "));
}

TEST_F(HttpServerTest, AHeaderOrBodyThatIsTooLongIsRefused) {
  Open({.header_bytes = 1000, .body_bytes = 100});
  EXPECT_THAT(Ask(Get("/echo", "A: " + std::string(2000, 'a') + "\r\n")),
              StartsWith("HTTP/1.1 431 "));
  EXPECT_THAT(Ask(Post("/echo", std::string(101, 'a'))), StartsWith("HTTP/1.1 413 "));
}

TEST_F(HttpServerTest, AnotherLimitOfBodiesHoldsForTheNextRequestOfAConnection) {
  Open({.body_bytes = 100});
  Wire wire(server_->port());
  wire.Say(Post("/echo", "a"));
  EXPECT_THAT(wire.ReadUntil("POST a"), StartsWith("HTTP/1.1 200 "));
  server_->set_body_bytes(200);
  wire.Say(Post("/echo", std::string(150, 'b')));
  EXPECT_THAT(wire.ReadUntil("POST " + std::string(150, 'b')), StartsWith("HTTP/1.1 200 "));
  server_->set_body_bytes(100);
  wire.Say(Post("/echo", std::string(101, 'c')));
  EXPECT_THAT(wire.ReadAll(), HasSubstr("HTTP/1.1 413 "));
}

TEST_F(HttpServerTest, ErrorsThatNoHandlerSeesAreToldOfTheHead) {
  std::promise<std::string> origin;
  auto server =
      HttpServer::Listen({.port = 0, .limits = {.body_bytes = 10}, .certificate = "", .key = ""},
                         {.handle = [](HttpRequest, HttpReplyPtr) {},
                          .error =
                              [&](int status, const std::string&, const HttpRequest& head) {
                                origin.set_value(std::string(head.Header("origin")));
                                return HttpResponse{.status = status};
                              }});
  ASSERT_TRUE(server.ok());
  Wire wire((*server)->port());
  wire.Say("POST / HTTP/1.1\r\nOrigin: https://a\r\nContent-Length: 11\r\n\r\n");
  EXPECT_THAT(wire.ReadAll(), StartsWith("HTTP/1.1 413 "));
  EXPECT_EQ(origin.get_future().get(), "https://a");
}

TEST_F(HttpServerTest, ALineThatNeverEndsIsRefusedWhereverItStands) {
  Open({.header_bytes = 10'000});
  const std::string endless(100'000, 'a');
  EXPECT_THAT(Ask("GET /" + endless), StartsWith("HTTP/1.1 4"));
  EXPECT_THAT(
      Ask("POST /echo HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n1;" + endless),
      StartsWith("HTTP/1.1 4"));
}

TEST_F(HttpServerTest, WhoMayNotAskIsToldBeforeTheBodyIsRead) {
  Wire wire = Connect();
  wire.Say("POST /closed HTTP/1.1\r\nHost: a\r\nContent-Length: 1000000\r\n\r\n");
  EXPECT_THAT(wire.ReadAll(), AllOf(StartsWith("HTTP/1.1 401 "), EndsWith("no key")));
  EXPECT_EQ(server_->counters().refused, 1u);
}

TEST_F(HttpServerTest, AConnectionGoesOnAfterARefusalWithoutABody) {
  Wire wire = Connect();
  wire.Say(Get("/closed") + Get("/echo", "Connection: close\r\n"));
  EXPECT_THAT(wire.ReadAll(), AllOf(StartsWith("HTTP/1.1 401 "), EndsWith("GET ")));
  EXPECT_EQ(server_->counters().refused, 0u);  // of connections that were ended
}

TEST_F(HttpServerTest, ARefusalWaitsForTheResponseBeforeIt) {
  Wire wire = Connect();
  wire.Say(Get("/stream") + Get("/closed"));
  wire.ReadUntil("data: 1\n\n");
  Kept()->End();
  Forget();
  EXPECT_THAT(wire.ReadAll(), EndsWith("no key"));
}

}  // namespace
}  // namespace troupe
