#include "split/codec/cut_file.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <optional>

#include "base/base64.h"
#include "base/json_value.h"

namespace troupe {
namespace {

constexpr std::string_view kCutsFormat = "troupe cuts";
constexpr std::uint32_t kCutsVersion = 1;
constexpr std::uint64_t kMostTokensRead = std::uint64_t{1} << 50;
constexpr std::uint64_t kMostLayer = 1u << 16;
constexpr double kMostNats = 1e6;
constexpr double kMostRowBytes = 1e9;
constexpr double kWorthAnEntropyCoder = 0.9;  // of the bytes without

template <typename T>
std::string NumbersToText(const std::vector<T>& numbers) {
  return Base64(std::as_bytes(std::span(numbers)));
}

std::vector<float> FloatsFromText(const JsonValue& json) {
  const auto bytes = BytesOfBase64(json.String());
  if (!bytes || bytes->size() % sizeof(float) != 0) json.Fail("floats as base64");
  std::vector<float> floats(bytes->size() / sizeof(float));
  if (!floats.empty()) std::memcpy(floats.data(), bytes->data(), bytes->size());
  return floats;
}

StateForm FormFrom(const JsonValue& json) {
  const std::optional<StateForm> form = StateFormFrom(json.String());
  if (!form) json.Fail("floats, int8 or int4");
  return *form;
}

Json CodePriceToJson(const CodePrice& price, std::size_t row_bytes) {
  return {{"rank", price.code.rank},
          {"form", NameOf(price.code.form)},
          {"bytes", row_bytes},
          {"error", price.error},
          {"kl", price.kl},
          {"kl_most", price.kl_most},
          {"loss", price.loss},
          {"loss_most", price.loss_most},
          {"same_top", price.same_top},
          {"bits", price.bits},
          {"rans_bytes", price.rans_bytes}};
}

CodePrice CodePriceFrom(const JsonValue& json, const CutBasis& basis) {
  CodePrice price{
      .code = {.rank = static_cast<std::uint32_t>(json.At("rank").Count(0, kMostStateWidth)),
               .form = FormFrom(json.At("form"))},
      .error = json.At("error").Number(0, kMostNats),
      .kl = json.At("kl").Number(0, kMostNats),
      .loss = json.At("loss").Number(-1, kMostNats),
      .same_top = json.At("same_top").Number(0, 1)};
  // Older files have neither.
  if (json.Has("bits")) price.bits = json.At("bits").Number(0, 8);
  if (json.Has("rans_bytes")) price.rans_bytes = json.At("rans_bytes").Number(0, kMostRowBytes);
  price.kl_most = json.At("kl_most").Number(price.kl, kMostNats);
  price.loss_most = json.At("loss_most").Number(price.loss, kMostNats);
  const Status fits = CheckCode(price.code, basis);
  if (!fits.ok()) json.At("rank").Fail(fmt::format("a rank of the basis ({})", fits.message()));
  return price;
}

Json CutToJson(const PricedCut& cut) {
  Json codes = Json::Array();
  for (const CodePrice& price : cut.codes) {
    codes.push_back(CodePriceToJson(price, cut.RowBytes(price.code)));
  }
  return {{"layer", cut.basis.layer},
          {"text", cut.text},
          {"width", cut.basis.width},
          {"kept", cut.basis.kept},
          {"mean", NumbersToText(cut.basis.mean)},
          {"finders", NumbersToText(cut.basis.finders)},
          {"directions", NumbersToText(cut.basis.directions)},
          {"fitted_on", cut.fitted_on},
          {"measured_on", cut.measured_on},
          {"codes", std::move(codes)}};
}

PricedCut CutFrom(const JsonValue& json) {
  PricedCut cut{
      .basis = {.layer = static_cast<std::uint32_t>(json.At("layer").Count(1, kMostLayer)),
                .width = static_cast<std::uint32_t>(json.At("width").Count(1, kMostStateWidth)),
                .kept = {},
                .mean = FloatsFromText(json.At("mean")),
                .finders = FloatsFromText(json.At("finders")),
                .directions = FloatsFromText(json.At("directions"))},
      .text = json.At("text").String(),
      .fitted_on = json.At("fitted_on").Count(0, kMostTokensRead),
      .measured_on = json.At("measured_on").Count(0, kMostTokensRead),
      .codes = {}};
  const JsonValue kept = json.At("kept"), codes = json.At("codes");
  if (!kept.IsArray()) kept.Fail("an array of channels");
  for (std::size_t i = 0; i < kept.size(); ++i) {
    cut.basis.kept.push_back(static_cast<std::uint32_t>(kept.At(i).Count(0, kMostStateWidth)));
  }
  if (const Status valid = CheckBasis(cut.basis); !valid.ok()) {
    JsonValue::Refuse(fmt::format("{}: {}", json.place(), valid.message()));
  }
  if (!codes.IsArray()) codes.Fail("an array of codes");
  for (std::size_t i = 0; i < codes.size(); ++i) {
    cut.codes.push_back(CodePriceFrom(codes.At(i), cut.basis));
  }
  return cut;
}

CutFile CutFileFrom(const JsonValue& json) {
  if (!json.IsObject() || !json.Has("format") || json.At("format").raw() != kCutsFormat) {
    JsonValue::Refuse(fmt::format("not {}", kCutsFormat));
  }
  if (json.At("version").raw() != kCutsVersion) {
    json.At("version").Fail(fmt::format("{}", kCutsVersion));
  }
  CutFile file{.fingerprint = json.At("model").String(), .cuts = {}};
  const JsonValue cuts = json.At("cuts");
  if (!cuts.IsArray()) cuts.Fail("an array of cuts");
  for (std::size_t i = 0; i < cuts.size(); ++i) {
    file.cuts.push_back(CutFrom(cuts.At(i)));
    if (i > 0 && file.cuts[i].basis.layer <= file.cuts[i - 1].basis.layer) {
      cuts.At(i).At("layer").Fail("layers that rise");
    }
  }
  return file;
}

}  // namespace

double CodePrice::LossBound() const { return std::max(loss_most, std::expm1(kl_most)); }

StateCode ChooseCode(const PricedCut& cut, double most_loss) {
  StateCode best;
  for (const CodePrice& price : cut.codes) {
    if (price.LossBound() > most_loss) continue;
    if (cut.RowBytes(price.code) < cut.RowBytes(best)) best = price.code;
  }
  return best;
}

std::vector<TriedCode> CodesWorthATry(const PricedCut& cut, double most_loss) {
  PricedCut whole = cut;
  std::erase_if(whole.codes, [](const CodePrice& price) { return price.code.rank > 0; });
  std::vector<StateCode> codes = {ChooseCode(whole, most_loss)};
  const StateCode shortest = ChooseCode(cut, most_loss);
  if (shortest != codes.front()) codes.push_back(shortest);
  std::erase_if(codes, &StateCode::exact);
  std::vector<TriedCode> tried;
  for (StateCode code : codes) {
    const double plain = static_cast<double>(cut.RowBytes(code));
    tried.push_back({.code = code, .row_bytes = plain});
    const double coded = std::ranges::find(cut.codes, code, &CodePrice::code)->rans_bytes;
    if (coded == 0 || coded > kWorthAnEntropyCoder * plain) continue;
    code.rans = true;
    tried.push_back({.code = code, .row_bytes = coded});
  }
  return tried;
}

CutFile WithCutsOf(const CutFile& before, CutFile now) {
  if (before.fingerprint != now.fingerprint) return now;
  const auto layer_of = [](const PricedCut& cut) { return cut.basis.layer; };
  for (const PricedCut& cut : before.cuts) {
    if (std::ranges::find(now.cuts, cut.basis.layer, layer_of) == now.cuts.end()) {
      now.cuts.push_back(cut);
    }
  }
  std::ranges::sort(now.cuts, {}, layer_of);
  return now;
}

std::string EncodeCutFile(const CutFile& file) {
  Json cuts = Json::Array();
  for (const PricedCut& cut : file.cuts) cuts.push_back(CutToJson(cut));
  return Json{{"format", kCutsFormat},
              {"version", kCutsVersion},
              {"model", file.fingerprint},
              {"cuts", std::move(cuts)}}
             .Dump() +
         "\n";
}

Result<CutFile> DecodeCutFile(const std::string& name, std::string_view text) {
  return ReadJson<CutFile>(name, text, CutFileFrom);
}

}  // namespace troupe
