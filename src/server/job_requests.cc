#include "server/job_requests.h"

#include <algorithm>
#include <utility>

#include "base/check.h"

namespace troupe {
namespace {

std::size_t BytesOfTokens(std::size_t tokens) { return tokens * sizeof(TokenId); }

// What a request has beside its prompt.
std::size_t BytesBeside(const Request& request) {
  // A stop stands in the request and again, beside a number for each byte, where it is looked for.
  constexpr std::size_t kOfBias = 96, kOfStop = 160, kOfStopByte = 2 + sizeof(std::size_t);
  std::size_t bytes = sizeof(Request) + request.sampling.logit_bias.size() * kOfBias +
                      BytesOfTokens(request.stop_tokens.size() + request.begun.size());
  for (const std::string& stop : request.stop) bytes += kOfStop + kOfStopByte * stop.size();
  bytes += request.cache_salt.size();
  if (request.rule) bytes += request.rule->text.size();
  return bytes;
}

}  // namespace

JobRequests JobRequests::Of(Request request, std::size_t n) {
  JobRequests job{.common = {}, .prompts = {}, .n = n};
  job.prompts.push_back(std::move(std::get<std::vector<TokenId>>(request.prompt)));
  job.common = std::move(request);
  job.common.prompt = {};
  return job;
}

Request JobRequests::Make(std::size_t i) {
  TROUPE_CHECK(i < count());
  if (count() == 1) {
    Request only = std::move(common);
    only.prompt = std::move(prompts.front());
    return only;
  }
  Request one = common;
  one.prompt = prompts[i / n];
  one.sampling.seed += i % n;
  return one;
}

std::size_t JobRequests::LongestPrompt() const {
  std::size_t longest = 0;
  for (const std::vector<TokenId>& prompt : prompts) longest = std::max(longest, prompt.size());
  return longest;
}

Bytes JobRequests::SizeInMemory(std::size_t together) const {
  constexpr std::size_t kOfAnswer = 1024;  // where it goes as it comes, without its text
  const std::size_t beside = BytesBeside(common);
  std::size_t bytes = beside + count() * kOfAnswer;
  for (const std::vector<TokenId>& prompt : prompts) bytes += BytesOfTokens(prompt.size());
  if (count() > 1) {
    bytes += std::min(together, count()) * (beside + BytesOfTokens(LongestPrompt()));
  }
  return Bytes(bytes);
}

}  // namespace troupe
