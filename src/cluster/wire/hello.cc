#include "cluster/wire/hello.h"

#include <algorithm>

#include "cluster/wire/frame_reader.h"
#include "cluster/wire/frame_writer.h"
#include "cluster/wire/wire_text.h"

namespace troupe {
namespace {

constexpr std::string_view kHelloMagic = "TRPPEERS";
// Kind, magic, version, start, model, arithmetic, grid, width, form, epoch.
constexpr std::size_t kHelloBytes = 1 + 8 + 2 + 8 + 16 + 8 + kGridBytes + 4 + 1 + 8;

constexpr auto kLastRefusedReason = PeerRefused::Reason::kOtherCertificate;

}  // namespace

std::string ModelText(const PeerHello& hello) {
  return fmt::format("{:016x}{:016x}", hello.model[0], hello.model[1]);
}

std::string_view ToString(PeerRefused::Reason reason) {
  switch (reason) {
    case PeerRefused::Reason::kOther:
      return "other reason";
    case PeerRefused::Reason::kOtherWire:
      return "other version of the wire";
    case PeerRefused::Reason::kOtherModel:
      return "other model";
    case PeerRefused::Reason::kOtherArithmetic:
      return "other arithmetic";
    case PeerRefused::Reason::kOtherCluster:
      return "other cluster";
    case PeerRefused::Reason::kNameTaken:
      return "name taken";
    case PeerRefused::Reason::kStopping:
      return "stopping";
    case PeerRefused::Reason::kBadMessage:
      return "bad message";
    case PeerRefused::Reason::kWrongAnswer:
      return "wrong answer";
    case PeerRefused::Reason::kOtherCertificate:
      return "other certificate";
  }
  return "unknown";
}

std::string ToString(const PeerHello& hello) {
  return fmt::format(
      "hello: node {} of cluster {} at {}, start {:016x}, model {}, arithmetic {:016x}, {}, rows "
      "of "
      "{} {}, plan {}",
      hello.node, hello.cluster, hello.address, hello.start_id, ModelText(hello), hello.arithmetic,
      ToString(hello.grid), hello.width, ToString(hello.form), hello.plan_epoch);
}

std::string ToString(const PeerRefused& refused) {
  return fmt::format("refused: {}: {}", ToString(refused.reason), refused.text);
}

std::vector<std::byte> Encode(const PeerHello& hello) {
  CheckWidth(hello.form, hello.width);
  FrameWriter out(PeerMessageKind::kHello, kHelloBytes + TextBytes(hello.cluster) +
                                               TextBytes(hello.node) + TextBytes(hello.address));
  out.PutArray(std::span(kHelloMagic));
  out.Put(kWireVersion);
  out.Put(hello.start_id);
  for (const std::uint64_t word : hello.model) out.Put(word);
  out.Put(hello.arithmetic);
  PutGrid(out, hello.grid);
  out.Put(hello.form);
  out.Put(hello.width);
  out.Put(hello.plan_epoch);
  out.PutName(hello.cluster);
  out.PutName(hello.node);
  out.PutName(hello.address);
  return std::move(out).Take();
}

std::vector<std::byte> Encode(const PeerRefused& refused) {
  const std::string text = AsPeerText(refused.text);
  FrameWriter out(PeerMessageKind::kRefused, 2 + TextBytes(text));
  out.Put(refused.reason);
  out.PutText(text);
  return std::move(out).Take();
}

Result<PeerHello> DecodePeerHello(std::span<const std::byte> frame) {
  FrameReader in(PeerMessageKind::kHello, frame);
  const auto magic = in.ReadBytes(kHelloMagic.size(), "magic");
  if (!std::ranges::equal(magic, std::as_bytes(std::span(kHelloMagic)))) {
    in.Fail("other bytes found, {} expected", kHelloMagic);
  }
  const auto version = in.Read<std::uint16_t>("version of the wire");
  TROUPE_RETURN_IF_ERROR(in.status());
  if (version != kWireVersion) {
    in.Fail("{} found, {} expected", version, kWireVersion);
    return Status(Code::kUnimplemented, in.status().message());
  }
  PeerHello hello;
  hello.start_id = in.Read<std::uint64_t>("start");
  for (std::uint64_t& word : hello.model) word = in.Read<std::uint64_t>("model");
  hello.arithmetic = in.Read<std::uint64_t>("arithmetic");
  hello.grid = ReadGrid(in);
  hello.form = in.ReadEnum("form of rows", RowForm::kFloat, RowForm::kInt8);
  hello.width = ReadWidth(in, hello.form);
  hello.plan_epoch = in.Read<std::uint64_t>("epoch of the plan");
  hello.cluster = in.ReadName("cluster");
  hello.node = in.ReadName("node");
  hello.address = in.ReadName("address");
  TROUPE_RETURN_IF_ERROR(in.Finish());
  return hello;
}

Result<PeerRefused> DecodePeerRefused(std::span<const std::byte> frame) {
  FrameReader in(PeerMessageKind::kRefused, frame);
  PeerRefused refused;
  const auto reason = in.Read<std::uint8_t>("reason");
  if (reason <= static_cast<std::uint8_t>(kLastRefusedReason)) {
    refused.reason = static_cast<PeerRefused::Reason>(reason);
  }
  refused.text = in.ReadText("text");
  TROUPE_RETURN_IF_ERROR(in.Finish());
  return refused;
}

}  // namespace troupe
