#include "server/cut_host.h"

#include <algorithm>
#include <utility>

#include "base/clock.h"
#include "server/cloud_cut.h"

namespace troupe {
namespace {

// Prompts of ends that are cut at a time; more wait for their turn.
constexpr std::size_t kTogether = 16;

// Messages of keys and values that wait to be stored, all together.
constexpr Bytes kOfKeys = 16_MiB;

// With rows as they came, and decoded.
Bytes WaitingOf(std::size_t width, std::size_t tokens) {
  return Bytes(2 * tokens * width * sizeof(float)) + kOfKeys;
}

}  // namespace

PartShape CutHost::ShapeFor(const ModelConfig& config, std::size_t tokens) {
  return {.layers = {0, config.layers}, .positions = tokens};
}

Bytes CutHost::BytesFor(const ModelConfig& config, std::size_t tokens, KvType type,
                        std::uint32_t context) {
  if (tokens == 0 || config.layers < 2 || !config.KeysTellAll()) return Bytes();
  return PartRunner::BytesFor(config, ShapeFor(config, tokens), type, context) +
         WaitingOf(config.width, tokens);
}

CutHost::CutHost(std::uint32_t width, std::size_t tokens, std::vector<CutBasis> bases,
                 CutLimits limits)
    : width_(width), memory_(WaitingOf(width, tokens)), limits_(limits) {
  for (CutBasis& basis : bases) {
    const std::uint32_t layer = basis.layer;
    bases_[layer] = std::make_shared<const CutBasis>(std::move(basis));
  }
}

Result<std::shared_ptr<CutHost>> CutHost::Create(Engine& engine, PassGaps gaps, std::size_t tokens,
                                                 std::vector<CutBasis> bases, CutLimits limits) {
  TROUPE_RETURN_IF_ERROR(CheckPromptCut(engine.config(), 1));
  TROUPE_ASSIGN_OR_RETURN(PartRunner runner,
                          PartRunner::Create(engine, ShapeFor(engine.config(), tokens)));
  static const MonotonicClock kClock;  // a pass under way may end after the host
  std::shared_ptr<CutHost> host(
      new CutHost(engine.config().width, tokens, std::move(bases), limits));
  host->lane_ = std::make_unique<PartLane>(std::move(runner), std::move(gaps), kClock);
  return host;
}

CutHost::~CutHost() = default;

Result<StateDecoder> CutHost::DecoderFor(const CutAsk& ask) const {
  const auto found = bases_.find(ask.layer);
  std::shared_ptr<const CutBasis> basis;
  if (!ask.code.exact() && found != bases_.end() && found->second->width == width_) {
    basis = found->second;
  } else {
    basis = std::make_shared<const CutBasis>(PlainBasis(ask.layer, width_));
  }
  TROUPE_RETURN_IF_ERROR(CheckCode(ask.code, *basis));
  if (DigestOf(*basis, ask.code) != ask.basis) {
    return InvalidArgument(
        "a cut before layer {} by another basis: `troupe calibrate --cut` once, "
        "and its file on both sides",
        ask.layer);
  }
  return StateDecoder::Create(std::move(basis), ask.code);
}

bool CutHost::Enter(std::uint64_t end, std::size_t tokens, const void* who, EndTurns::Begin begin) {
  const EndTurns::Share share{.turns = kTogether / 2,
                              .sizes = std::max<std::size_t>(lane_->pages() / 2, 1),
                              .size = lane_->PagesFor(tokens),
                              .who = who};
  return turns_.Enter(end, kTogether, share, std::move(begin));
}

bool CutHost::Open(std::uint64_t end, std::uint64_t name, std::shared_ptr<CloudCut> cut) {
  const MutexLock lock(mu_);
  if (!ended_) open_[{end, name}].swap(cut);
  return !ended_;
}

void CutHost::Close(std::uint64_t end, std::uint64_t name, const CloudCut* cut) {
  std::shared_ptr<CloudCut> closed;  // let go of without the lock
  const MutexLock lock(mu_);
  const auto found = open_.find({end, name});
  if (found == open_.end() || found->second.get() != cut) return;
  closed = std::move(found->second);
  open_.erase(found);
}

std::shared_ptr<CloudCut> CutHost::Find(std::uint64_t end, std::uint64_t name) const {
  const MutexLock lock(mu_);
  const auto found = open_.find({end, name});
  return found == open_.end() ? nullptr : found->second;
}

void CutHost::EndAll() {
  lane_->Close();
  std::vector<std::shared_ptr<CloudCut>> all;
  {
    const MutexLock lock(mu_);
    ended_ = true;  // each turn that ends begins the next one, which finds this
    for (const auto& [name, cut] : open_) all.push_back(cut);
  }
  for (const auto& cut : all) cut->Fail(Status(Code::kCancelled, "the engine was closed"));
  decoding_.Wait();
}

}  // namespace troupe
