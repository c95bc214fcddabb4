#include "cluster/wire/plan_notice.h"

#include "cluster/wire/frame_reader.h"
#include "cluster/wire/frame_writer.h"

namespace troupe {

std::string ToString(const PeerPlanNotice& notice) {
  return fmt::format("plan notice: plan {}, {} bytes", notice.epoch, notice.plan.size());
}

std::vector<std::byte> Encode(const PeerPlanNotice& notice) {
  FrameWriter out(PeerMessageKind::kPlanNotice, 1 + 8 + notice.plan.size());
  out.Put(notice.epoch);
  out.PutBytes(std::as_bytes(std::span(notice.plan)));
  return std::move(out).Take();
}

Result<PeerPlanNotice> DecodePeerPlanNotice(std::span<const std::byte> frame) {
  FrameReader in(PeerMessageKind::kPlanNotice, frame);
  PeerPlanNotice notice;
  notice.epoch = in.Read<std::uint64_t>("epoch");
  const auto plan = in.ReadRest("plan");
  notice.plan.assign(reinterpret_cast<const char*>(plan.data()), plan.size());
  TROUPE_RETURN_IF_ERROR(in.Finish());
  return notice;
}

}  // namespace troupe
