// A service of a small model, without sockets, that takes prompts which an end has cut, and the
// end's part of them. For tests only.
#pragma once

#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "api/model_access.h"
#include "server/cut_host.h"
#include "server/cut_memory_for_test.h"
#include "server/cut_states_for_test.h"
#include "server/service_for_test.h"
#include "split/wire/cloud_request.h"

namespace troupe {

inline constexpr ModelProof kFits{.model = {1, 2}, .arithmetic = 3};
inline constexpr std::uint32_t kCutBefore = 3;

class CloudCutTest : public ServiceTest {
 protected:
  void SetUp() override {
    Open();
    served_.for_ends = kFits;
    OpenCuts({});
  }
  void OpenCuts(CutLimits limits) {
    served_.cuts = CutHost::Create(ModelAccess::EngineOf(model()), ModelAccess::GapsOf(model()),
                                   /*tokens=*/96, {}, limits)
                       .value();
  }
  void TearDown() override {
    if (served_.cuts) served_.cuts->EndAll();
    ServiceTest::TearDown();
    served_.cuts.reset();
  }

  Request Asked(std::uint64_t seed = 5, std::size_t tokens = 1) {
    Request request = Ask("The kernel is the part that the rest of it leans on", tokens, seed);
    request.prompt = model().PromptTokens(request.prompt).value();
    request.exact = true;
    request.ignore_end = true;
    return request;
  }
  CloudRequest Cut(const Request& request, StateCode code = {}, std::uint64_t name = 7) {
    return {
        .proof = kFits,
        .request = request,
        .cut = CutAsk{
            .name = name, .layer = kCutBefore, .code = code, .basis = lower_.DigestOfPlain(code)}};
  }
  static const std::vector<TokenId>& PromptOf(const Request& request) {
    return std::get<std::vector<TokenId>>(request.prompt);
  }
  Answer Alone(const Request& request) { return model().Start(request)->Wait().value(); }
  std::shared_ptr<FakeReply> Send(std::string message) {
    return Start("POST", "/split/states/7", std::move(message));
  }

  LowerLayers lower_{kCutBefore};
};

}  // namespace troupe
