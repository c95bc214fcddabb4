// An end and a cloud in one process, with a real model each and real sockets between them. For
// tests only.
#pragma once

#include <gtest/gtest.h>

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "api/model_access.h"
#include "api/tiny_model_for_test.h"
#include "base/mutex.h"
#include "server/cut_host.h"
#include "server/cut_memory_for_test.h"
#include "server/service.h"
#include "split/end_answers.h"

namespace troupe {

inline constexpr ModelProof kSameModel{.model = {1, 2}, .arithmetic = 3};

class EndAndCloudTest : public testing::Test {
 protected:
  struct Cloud {
    std::vector<std::string> keys = {};
    std::uint16_t port = 0;
    std::size_t cut_tokens = 0;
  };

  void SetUp() override { model_ = OpenTiny({.sequences = 2, .answer_rules = true}); }
  void TearDown() override {
    if (end_) end_->Close();
    end_.reset();
    CloseCloud();
    model_->Close();
  }

  void OpenCloud() { OpenCloud(Cloud()); }
  void OpenCloud(const Cloud& cloud) {
    served_ = {.model = OpenTiny({.sequences = 2, .answer_rules = true}),
               .options = {.name = "tiny", .sampling = {}}};
    served_.for_ends = kSameModel;
    if (cloud.cut_tokens > 0) {
      served_.cuts = CutHost::Create(ModelAccess::EngineOf(*served_.model),
                                     ModelAccess::GapsOf(*served_.model), cloud.cut_tokens, {})
                         .value();
    }
    service_.emplace(served_);
    router_.emplace(AccessRules{.keys = cloud.keys});
    service_->AddTo(*router_);
    server_ = HttpServer::Listen(
                  {.port = cloud.port, .certificate = "", .key = ""},
                  {.handle =
                       [this](HttpRequest request, HttpReplyPtr reply) {
                         router_->Serve(std::move(request), std::move(reply));
                       },
                   .refusal = [this](const HttpRequest& head) { return router_->Refusal(head); }})
                  .value();
  }
  // As a cloud that is killed: connections break.
  void CloseCloud() {
    server_.reset();
    if (served_.model) served_.Close();
    router_.reset();
    service_.reset();
    served_ = {};
  }

  void OpenEnd(EndOptions options = {}) {
    if (options.cloud.url.host.empty()) {
      options.cloud.url = ParseHttpUrl(server_->Address()).value();
    }
    if (options.proof == ModelProof()) options.proof = kSameModel;
    options.say = [this](const std::string& line) {
      const MutexLock lock(mu_);
      said_ += line + "\n";
    };
    options.pauses = {.while_there = 50'000'000, .first_away = 20'000'000, .refused = 50'000'000};
    end_ = EndAnswers::Open(*model_, std::move(options)).value();
  }
  void WaitFor(CloudWatch::State state) {
    for (int i = 0; end_->State().cloud != state; ++i) {
      ASSERT_LT(i, 3000) << ToString(end_->State().cloud);
      std::this_thread::sleep_for(std::chrono::milliseconds(10));
    }
  }
  std::string said() {
    const MutexLock lock(mu_);
    return said_;
  }
  Answer Alone(const Request& request) { return model_->Start(request)->Wait().value(); }

  std::unique_ptr<Model> model_;
  ServedModel served_;
  std::optional<Service> service_;
  std::optional<Router> router_;
  std::unique_ptr<HttpServer> server_;
  std::unique_ptr<EndAnswers> end_;
  Mutex mu_;
  std::string said_;
};

}  // namespace troupe
