#include "split/wire/cut_ask.h"

#include <limits>

#include "base/json.h"
#include "split/codec/cut_basis.h"
#include "split/codec/state_frame.h"

namespace troupe {
namespace {

constexpr std::uint64_t kMost64 = std::numeric_limits<std::uint64_t>::max();
constexpr std::uint64_t kMostLayers = 1 << 16;
constexpr double kMostSeconds = 1e9;

}  // namespace

Json Record(const CutAsk& ask) {
  return {{"name", ask.name},         {"layer", ask.layer}, {"rank", ask.code.rank},
          {"form", NameOf(ask.code)}, {"basis", ask.basis}, {"prefix", ask.prefix},
          {"process", ask.process}};
}

CutAsk ReadCutAsk(const JsonValue& json) {
  CutAsk ask;
  ask.name = json.At("name").Count(0, kMost64);
  ask.layer = static_cast<std::uint32_t>(json.At("layer").Count(1, kMostLayers));
  const std::optional<StateCode> code = StateCodeFrom(json.At("form").String());
  if (!code) json.At("form").Fail("floats, int8 or int4, or such codes with -rans");
  ask.code = *code;
  ask.code.rank = static_cast<std::uint32_t>(json.At("rank").Count(0, kMostStateWidth));
  ask.basis = json.At("basis").Count(0, kMost64);
  ask.prefix = json.At("prefix").Count(0, kMostStatePosition);
  ask.process = json.At("process").Count(0, kMost64);
  return ask;
}

std::string Encode(const StatesReceipt& receipt) {
  return Json{
      {"rows", receipt.rows}, {"waited_s", receipt.waited_seconds}, {"seconds", receipt.seconds}}
      .Dump();
}

Result<StatesReceipt> DecodeStatesReceipt(std::string_view text) {
  return ReadJson<StatesReceipt>("the cloud's receipt", text, [](const JsonValue& json) {
    StatesReceipt receipt;
    receipt.rows = json.At("rows").Count(0, kMostStateRows);
    receipt.waited_seconds = json.At("waited_s").Number(0, kMostSeconds);
    receipt.seconds = json.At("seconds").Number(0, kMostSeconds);
    return receipt;
  });
}

}  // namespace troupe
