// A service of a small model, asked without sockets. For tests only.
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

#include "api/tiny_model_for_test.h"
#include "base/json.h"
#include "server/fake_reply_for_test.h"
#include "server/service.h"

namespace troupe {

class ServiceTest : public testing::Test {
 protected:
  void Open(ModelOptions options = {}) { Serve(OpenTiny(options)); }
  void Serve(std::unique_ptr<Model> model) {
    if (served_.model) served_.model->Close();
    service_.reset();
    served_ = {.model = std::move(model),
               .options = {.name = "tiny", .sampling = {}, .pooling = pooling_}};
    service_ = std::make_unique<Service>(served_, pulse_);
    router_ = std::make_unique<Router>(AccessRules());
    service_->AddTo(*router_);
  }
  void SetUp() override { Open(); }
  void TearDown() override {
    if (served_.model) served_.model->Close();
  }
  Model& model() { return *served_.model; }

  std::shared_ptr<FakeReply> Start(std::string method, std::string path, std::string body = "") {
    auto reply = std::make_shared<FakeReply>();
    router_->Serve({.method = std::move(method), .path = std::move(path), .body = std::move(body)},
                   reply);
    return reply;
  }
  std::shared_ptr<FakeReply> Post(std::string path, std::string body) {
    auto reply = Start("POST", std::move(path), std::move(body));
    reply->WaitForEnd();
    return reply;
  }
  Json PostJson(std::string path, std::string body) {
    return Json::Parse(Post(std::move(path), std::move(body))->body()).value();
  }
  // The text of a stream of completions.
  static std::string TextOf(std::string_view events) {
    std::string text;
    while (!events.empty()) {
      const std::string_view event = events.substr(0, events.find("\n\n"));
      events.remove_prefix(std::min(events.size(), event.size() + 2));
      const auto json = Json::Parse(event.substr(std::string_view("data: ").size()));
      if (!json || json->Find("choices")->size() == 0) continue;
      text += (*json->Find("choices"))[0].Find("text")->AsString();
    }
    return text;
  }

  std::optional<Pooling> pooling_;
  std::chrono::milliseconds pulse_{10'000};
  ServedModel served_;
  std::unique_ptr<Service> service_;
  std::unique_ptr<Router> router_;
};

inline constexpr const char* kSay =
    R"({"prompt":"The kernel","max_tokens":12,"temperature":0.9,"seed":5,"ignore_eos":true)";

}  // namespace troupe
