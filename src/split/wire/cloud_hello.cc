#include "split/wire/cloud_hello.h"

#include <limits>

#include "base/json.h"

namespace troupe {
namespace {

constexpr double kMostHelloSeconds = 1e9;

}  // namespace

std::string Encode(const CloudHello& hello) {
  Json record = Record(hello.proof);
  record.Update({{"context", hello.context},
                 {"sequences", hello.sequences},
                 {"under_way", hello.under_way},
                 {"checks_drafts", hello.checks_drafts},
                 {"cut_tokens", hello.cut_tokens},
                 {"cut_answers", hello.goes_on_behind_cuts},
                 {"answer_s", hello.answer_seconds},
                 {"read_s", hello.read_seconds},
                 {"token_s", hello.token_seconds}});
  return record.Dump();
}

Result<CloudHello> DecodeCloudHello(std::string_view text) {
  return ReadJson<CloudHello>("the cloud's hello", text, [](const JsonValue& json) {
    CloudHello hello{.proof = ReadModelProof(json)};
    const auto count = [&json](const char* key, std::uint64_t least) {
      return static_cast<std::uint32_t>(
          json.At(key).Count(least, std::numeric_limits<std::uint32_t>::max()));
    };
    const auto seconds = [&json](const char* key) {
      return json.At(key).Number(0, kMostHelloSeconds);
    };
    hello.context = count("context", 1);
    hello.sequences = count("sequences", 1);
    hello.under_way = count("under_way", 0);
    hello.checks_drafts = json.At("checks_drafts").Flag();
    hello.cut_tokens = count("cut_tokens", 0);
    hello.goes_on_behind_cuts = json.At("cut_answers").Flag();
    hello.answer_seconds = seconds("answer_s");
    hello.read_seconds = seconds("read_s");
    hello.token_seconds = seconds("token_s");
    return hello;
  });
}

}  // namespace troupe
