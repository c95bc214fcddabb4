#include "split/wire/model_proof.h"

#include <fmt/format.h>

#include <charconv>
#include <limits>
#include <string>

namespace troupe {
namespace {

std::string Hex(std::uint64_t word) { return fmt::format("{:016x}", word); }

std::uint64_t ReadHex(const JsonValue& value, std::string_view digits) {
  std::uint64_t word = 0;
  const auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), word, 16);
  const bool is_lower = digits.find_first_not_of("0123456789abcdef") == digits.npos;
  if (error != std::errc() || end != digits.data() + digits.size() || !is_lower) {
    value.Fail("lower-case hexadecimal digits");
  }
  return word;
}

std::string Fingerprint(const ModelProof& proof) {
  return Hex(proof.model[0]) + Hex(proof.model[1]);
}

}  // namespace

Status CheckFits(const ModelProof& own, const ModelProof& other, std::string_view who) {
  if (own.wire != other.wire) {
    return Error(Code::kFailedPrecondition, "{} speaks version {} of this, expected {}", who,
                 other.wire, own.wire);
  }
  if (own.model != other.model) {
    return Error(Code::kFailedPrecondition, "{} has another model, of fingerprint {}, expected {}",
                 who, Fingerprint(other), Fingerprint(own));
  }
  if (own.arithmetic != other.arithmetic) {
    return Error(Code::kFailedPrecondition,
                 "{} computes other bytes: a digest of {}, expected {}; other builds do", who,
                 Hex(other.arithmetic), Hex(own.arithmetic));
  }
  return OkStatus();
}

Json Record(const ModelProof& proof) {
  return {
      {"wire", proof.wire}, {"model", Fingerprint(proof)}, {"arithmetic", Hex(proof.arithmetic)}};
}

ModelProof ReadModelProof(const JsonValue& json) {
  constexpr std::size_t kDigits = 16;
  ModelProof proof;
  proof.wire = static_cast<std::uint32_t>(
      json.At("wire").Count(0, std::numeric_limits<std::uint32_t>::max()));
  const std::string model = json.At("model").String();
  const std::string arithmetic = json.At("arithmetic").String();
  if (model.size() != 2 * kDigits) json.At("model").Fail("32 hexadecimal digits");
  if (arithmetic.size() != kDigits) json.At("arithmetic").Fail("16 hexadecimal digits");
  for (std::size_t i = 0; i < 2; ++i) {
    proof.model[i] =
        ReadHex(json.At("model"), std::string_view(model).substr(i * kDigits, kDigits));
  }
  proof.arithmetic = ReadHex(json.At("arithmetic"), arithmetic);
  return proof;
}

}  // namespace troupe
