// A node among strangers: links open, send any frames in any order and close, time passes, steps
// end and fail. It never crashes, answers nobody on a link that is closed, holds no more than it
// may, and takes up no older plan.
//
// The input is a list of steps: a byte that says what happens, a byte for the link, and for a frame
// two bytes of length and its bytes. Whole messages of every kind are among the seeds.
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <set>
#include <span>
#include <variant>
#include <vector>

#include "base/check.h"
#include "cluster/node_core.h"

namespace {

using troupe::LinkId;
using troupe::NodeCore;
namespace node_action = troupe::node_action;

constexpr troupe::ExpertGrid kGrid{.layers = 2, .experts = 5};
constexpr std::uint32_t kMostHeld = 3;
constexpr troupe::Nanos kSecond = 1'000'000'000;

class Stranger {
 public:
  Stranger()
      : held_(kGrid.Count()),
        core_({.hello = {.start_id = 99,
                         .model = {12, 13},
                         .arithmetic = 14,
                         .grid = kGrid,
                         .width = 64,
                         .form = troupe::RowForm::kInt8,
                         .plan_epoch = 0,
                         .cluster = "lab",
                         .node = "n0",
                         .address = "10.0.0.9:7001"},
               .experts_per_token = 1,
               .expert_bytes = 100,
               .most_held = kMostHeld,
               .held = held_},
              {.addresses = {"10.0.0.1:7001", "10.0.0.9:7001"}, .planner = {}}, 0) {
    Perform();
  }

  void Run(std::span<const std::byte> input) {
    while (input.size() >= 2) {
      const auto what = std::to_integer<unsigned>(input[0]);
      const LinkId link = 1 + std::to_integer<unsigned>(input[1]) % 4;
      input = input.subspan(2);
      switch (what % 8) {
        case 0:
          if (open_.insert(link).second)
            core_.OnLinkOpened(link, {.address = {}, .names = {}}, now_);
          break;
        case 1:
          if (open_.erase(link) > 0) core_.OnLinkClosed(link, "gone", now_);
          break;
        case 2:
          now_ += kSecond;
          core_.OnTime(now_);
          break;
        case 3:
          if (carrying_) Carry(link != 1);
          break;
        case 4:
          if (choosing_) core_.OnPlanChosen(ChoosePlan(*std::exchange(choosing_, {})), now_);
          break;
        default:
          input = Frame(link, input);
      }
      Perform();
    }
  }

 private:
  std::span<const std::byte> Frame(LinkId link, std::span<const std::byte> input) {
    if (input.size() < 2) return {};
    const std::size_t wanted =
        std::to_integer<std::size_t>(input[0]) + 256 * std::to_integer<std::size_t>(input[1]);
    input = input.subspan(2);
    const std::size_t size = std::min(wanted, input.size());
    const std::vector<std::byte> frame(input.begin(),
                                       input.begin() + static_cast<std::ptrdiff_t>(size));
    if (open_.contains(link)) core_.OnFrame(link, frame, now_);
    return input.subspan(size);
  }

  void Carry(bool works) {
    const troupe::HoldingStep step = *std::exchange(carrying_, std::nullopt);
    if (const auto* release = std::get_if<troupe::ReleaseStep>(&step)) {
      held_[kGrid.Index(release->id)] = 0;
      works = true;
    } else if (works) {
      const auto& hold = std::get<troupe::HoldStep>(step);
      for (const std::uint32_t e : hold.experts) held_[kGrid.Index({hold.layer, e})] = 1;
    }
    TROUPE_CHECK(std::ranges::count(held_, 1) <= kMostHeld + troupe::HoldingFacts::kSwapSlots);
    core_.OnHeld(held_, works);
  }

  void Perform() {
    for (troupe::NodeAction& action : core_.TakeActions()) {
      if (const auto* send = std::get_if<node_action::Send>(&action)) {
        TROUPE_CHECK(open_.contains(send->link));
      } else if (const auto* closed = std::get_if<node_action::CloseLink>(&action)) {
        if (open_.erase(closed->link) > 0) core_.OnLinkClosed(closed->link, "closed", now_);
      } else if (const auto* broken = std::get_if<node_action::BreakLink>(&action)) {
        open_.erase(broken->link);
      } else if (auto* carry = std::get_if<node_action::Carry>(&action)) {
        TROUPE_CHECK(!carrying_);
        carrying_ = std::move(carry->step);
      } else if (auto* choose = std::get_if<node_action::Choose>(&action)) {
        TROUPE_CHECK(!choosing_);
        choosing_ = std::move(choose->job);
      }
    }
    const std::uint64_t epoch = core_.plan() ? core_.plan()->epoch : 0;
    TROUPE_CHECK(epoch >= epoch_);
    epoch_ = epoch;
    for (LinkId link = 1; link <= 4; ++link)
      TROUPE_CHECK(open_.contains(link) || !core_.IsPeer(link));
  }

  std::vector<std::uint8_t> held_;
  troupe::Nanos now_ = 0;
  std::set<LinkId> open_;
  std::optional<troupe::HoldingStep> carrying_;
  std::optional<troupe::PlanJob> choosing_;
  std::uint64_t epoch_ = 0;
  NodeCore core_;
};

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  Stranger().Run(std::as_bytes(std::span(data, size)));
  return 0;
}
