// POST /v1/completions: what a request says, and how its answers are shown. Pure.
#pragma once

#include <troupe/request.h>

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/status.h"
#include "server/answer_format.h"
#include "server/openai_values.h"

namespace troupe {

struct CompletionCall {
  std::vector<Prompt> prompts;  // an answer for each, times n
  Request request;              // all else of each of them
  OpenAiCall call;
  bool echo = false;  // the prompt is shown before its answer
  // Of the echo, for each prompt; whoever runs the request fills them in.
  struct Echo {
    std::string text;
    std::string first_token;  // which has no logprob
  };
  std::vector<Echo> echoes;

  // What is told of the prompt's tokens as of the answer's.
  bool TellsPrompt() const { return echo && call.logprobs.has_value(); }
};

// `defaults`: of a request that says nothing, its seed drawn.
Result<CompletionCall> ReadCompletionCall(std::string_view body, const Request& defaults);

std::unique_ptr<AnswerFormat> MakeCompletionFormat(const CompletionCall& call, OpenAiHead head);

}  // namespace troupe
