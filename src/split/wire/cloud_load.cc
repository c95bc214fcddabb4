#include "split/wire/cloud_load.h"

#include <limits>

namespace troupe {
namespace {

constexpr double kMostLoadSeconds = 1e9;
constexpr std::size_t kMostToRead = 1ULL << 40;

}  // namespace

Json Record(const CloudLoad& load) {
  return {{"under_way", load.under_way},
          {"to_read", load.to_read},
          {"answer_s", load.answer_seconds},
          {"read_s", load.read_seconds},
          {"token_s", load.token_seconds}};
}

CloudLoad ReadCloudLoad(const JsonValue& json) {
  const auto seconds = [&json](const char* key) {
    return json.At(key).Number(0, kMostLoadSeconds);
  };
  return {.under_way = static_cast<std::uint32_t>(
              json.At("under_way").Count(0, std::numeric_limits<std::uint32_t>::max())),
          .to_read = json.At("to_read").Count(0, kMostToRead),
          .answer_seconds = seconds("answer_s"),
          .read_seconds = seconds("read_s"),
          .token_seconds = seconds("token_s")};
}

}  // namespace troupe
