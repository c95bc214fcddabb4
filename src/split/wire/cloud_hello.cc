#include "split/wire/cloud_hello.h"

#include <limits>

#include "base/json.h"

namespace troupe {

std::string Encode(const CloudHello& hello) {
  Json record = Record(hello.proof);
  record.Update({{"context", hello.context},
                 {"sequences", hello.sequences},
                 {"checks_drafts", hello.checks_drafts},
                 {"cut_tokens", hello.cut_tokens},
                 {"cut_answers", hello.goes_on_behind_cuts},
                 {"load", Record(hello.load)}});
  return record.Dump();
}

Result<CloudHello> DecodeCloudHello(std::string_view text) {
  return ReadJson<CloudHello>("the cloud's hello", text, [](const JsonValue& json) {
    CloudHello hello{.proof = ReadModelProof(json)};
    const auto count = [&json](const char* key, std::uint64_t least) {
      return static_cast<std::uint32_t>(
          json.At(key).Count(least, std::numeric_limits<std::uint32_t>::max()));
    };
    hello.context = count("context", 1);
    hello.sequences = count("sequences", 1);
    hello.checks_drafts = json.At("checks_drafts").Flag();
    hello.cut_tokens = count("cut_tokens", 0);
    hello.goes_on_behind_cuts = json.At("cut_answers").Flag();
    hello.load = ReadCloudLoad(json.At("load"));
    return hello;
  });
}

}  // namespace troupe
