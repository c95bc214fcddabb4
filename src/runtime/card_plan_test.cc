#include "runtime/card_plan.h"
#include "gpu/driver_call_for_test.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <cstring>
#include <thread>

#include "base/log.h"
#include "base/rng.h"
#include "quant/random_rows.h"

namespace troupe {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

constexpr std::uint32_t kCardWidth = 64, kCardFf = 96, kCardExperts = 8;

// Two layers of experts behind a dense one.
struct PlannedCard {
  TensorInfo gate{{"g", TensorType::kQ8_0, {kCardWidth, kCardFf, kCardExperts}}};
  TensorInfo up{{"u", TensorType::kQ8_0, {kCardWidth, kCardFf, kCardExperts}}};
  TensorInfo down{{"d", TensorType::kQ8_0, {kCardFf, kCardWidth, kCardExperts}}};
  ExpertLayouts layouts{{}, ExpertLayout::For(gate, up, down), ExpertLayout::For(gate, up, down)};
  ModelConfig config;
  GpuInfo info{.name = "a card", .memory = 8_GiB, .largest_buffer = 2_GiB};

  PlannedCard() {
    config.width = kCardWidth;
    config.moe.routing = {.experts = kCardExperts, .top_k = 2};
  }
  Result<CardPlan> Plan(std::optional<Bytes> memory, std::uint32_t chunk = 16) const {
    return PlanCard(config, layouts, info, {.choice = "auto", .memory = memory}, chunk);
  }
};

TEST(CardPlanTest, HoldsAsManyExpertsAsTheBudgetHasRoomFor) {
  const PlannedCard planned;
  const CardPlan all = planned.Plan(1_GiB).value();
  EXPECT_EQ(all.experts, 2 * kCardExperts);
  EXPECT_EQ(all.shape.slots, 2 * kCardExperts);
  EXPECT_TRUE(all.holds_all());
  const Bytes beside = GpuWorker::DeviceBytes(all.shape);
  for (std::uint32_t slots = 2; slots < 2 * kCardExperts; ++slots) {
    const Bytes budget = beside + slots * all.shape.slot;
    const CardPlan plan = planned.Plan(budget).value();
    EXPECT_EQ(plan.shape.slots, slots);
    EXPECT_EQ(plan.total(), budget);
    EXPECT_EQ(planned.Plan(budget + all.shape.slot - Bytes(1))->shape.slots, slots);
  }
  const Status one = planned.Plan(beside + all.shape.slot).status();
  EXPECT_EQ(one.code(), Code::kInvalidArgument);
  EXPECT_THAT(one.message(), HasSubstr("hold no two experts"));
}

TEST(CardPlanTest, LeavesAPartOfACardToItsDriverUnlessSomebodySays) {
  const PlannedCard planned;
  EXPECT_EQ(planned.Plan(std::nullopt)->budget, 8_GiB - Bytes((8_GiB).count() / 10));
  EXPECT_EQ(DefaultCardBudget({.memory = 2_GiB}), 1536_MiB);
  EXPECT_EQ(DefaultCardBudget({.memory = 100_MiB}), Bytes(0));
}

TEST(CardPlanTest, ADeviceWithoutMemoryOfItsOwnTakesTheMachines) {
  PlannedCard planned;
  planned.info.shares_memory = true;
  EXPECT_THAT(planned.Plan(std::nullopt).status().message(), HasSubstr("--vram says how much"));
  const CardPlan plan = planned.Plan(1_GiB).value();
  planned.info.shares_memory = false;
  const CardPlan card = planned.Plan(1_GiB).value();
  EXPECT_EQ(CardHostBytes(plan, planned.config, 16),
            CardHostBytes(card, planned.config, 16) + card.total());
}

TEST(CardPlanTest, PassesThatAreLongerThanTheCardTakesCostNoMemory) {
  const PlannedCard planned;
  const CardPlan plan = planned.Plan(1_GiB, 1u << 20).value();
  EXPECT_EQ(plan.shape.experts.rows, 2048u);
  EXPECT_EQ(plan.shape.answers, 2048u * 2);
}

TEST(CardPlanTest, ASlotHoldsAnExpertAsMemoryDoesWithItsBiasesBehindIt) {
  const PlannedCard planned;
  Rng rng(3);
  const ExpertLayout& layout = planned.layouts[1];
  std::vector<std::vector<std::byte>> rows;
  std::vector<std::span<const std::byte>> views;
  for (const ExpertMatrix& matrix : layout.matrices) {
    rows.push_back(RandomRows(matrix.type, matrix.rows, matrix.cols, rng));
  }
  for (const auto& some : rows) views.emplace_back(some);
  std::vector<std::byte> slot(layout.SlotBytes());
  layout.Pack(views, slot);
  std::vector<float> biases(2 * kCardFf + kCardWidth);
  for (float& bias : biases) bias = static_cast<float>(rng.Normal());
  Mlp expert = layout.At(slot.data());
  expert.gate_bias = biases.data();
  expert.up_bias = biases.data() + kCardFf;
  expert.down_bias = biases.data() + 2 * kCardFf;

  const CardLayout card(layout, /*biases=*/true);
  std::vector<std::byte> filled(card.SlotBytes().count(), std::byte{0xee});
  EXPECT_EQ(card.Fill(expert, filled), card.SlotBytes());
  EXPECT_EQ(std::memcmp(filled.data(), slot.data(), slot.size()), 0);
  const GpuMlp placed = card.At(GateForm::kClamped);
  EXPECT_EQ(placed.form, GateForm::kClamped);
  EXPECT_EQ(placed.up.at, layout.matrices[1].slot_offset);
  EXPECT_EQ(std::memcmp(filled.data() + placed.gate_bias.at * sizeof(float), biases.data(),
                        biases.size() * sizeof(float)),
            0);
  EXPECT_EQ(placed.up_bias.at, placed.gate_bias.at + kCardFf);
  EXPECT_EQ(placed.down_bias.at, placed.up_bias.at + kCardFf);
  EXPECT_TRUE(card.has_biases());
  EXPECT_FALSE(CardLayout(layout, false).has_biases());
}

TEST(CardPlanTest, AnExpertWithoutUpTakesNoRoomForIt) {
  const PlannedCard planned;
  Rng rng(3);
  const ExpertLayout layout = ExpertLayout::WithoutUp(planned.gate, planned.down);
  const std::vector<std::byte> gate = RandomRows(TensorType::kQ8_0, kCardFf, kCardWidth, rng);
  const std::vector<std::byte> down = RandomRows(TensorType::kQ8_0, kCardWidth, kCardFf, rng);
  const std::vector<std::span<const std::byte>> rows = {gate, {}, down};
  std::vector<std::byte> slot(layout.SlotBytes());
  layout.Pack(rows, slot);
  const CardLayout card(layout, /*biases=*/false);
  EXPECT_EQ(card.SlotBytes(), Bytes(gate.size() + down.size()));
  std::vector<std::byte> filled(slot.size());
  EXPECT_EQ(card.Fill(layout.At(slot.data()), filled), card.SlotBytes());
  EXPECT_EQ(filled, slot);
  const GpuMlp placed = card.At(GateForm::kSquaredRelu);
  EXPECT_EQ(placed.gate.rows, kCardFf);
  EXPECT_EQ(placed.up.rows, 0u);
  EXPECT_EQ(placed.down.at, gate.size());
}

TEST(CardPlanTest, AnExpertInOtherTypesDoesNotFit) {
  const PlannedCard planned;
  const ExpertLayout& layout = planned.layouts[1];
  const ExpertLayout low = layout.In({TensorType::kQ4_0, TensorType::kQ4_0, TensorType::kQ4_0});
  const std::vector<std::byte> slot(layout.SlotBytes());
  EXPECT_TRUE(CardLayout(layout, false).Fits(layout.At(slot.data())));
  EXPECT_FALSE(CardLayout(layout, false).Fits(low.At(slot.data())));
  Mlp with_factor = layout.At(slot.data());  // which nobody would apply there
  const float factor = 2;
  with_factor.down.factor = &factor;
  EXPECT_FALSE(CardLayout(layout, false).Fits(with_factor));
}

// A machine as FindCard sees it, and what it was asked for.
struct MachineForTest {
  bool has_device_file = true;
  std::vector<GpuInfo> devices;
  Status listing, opening = Error(Code::kFailedPrecondition, "one wrong bit");
  std::atomic<bool> list_hangs = false, open_hangs = false;
  std::atomic<int> lists = 0, opens = 0, ended = 0;
  std::atomic<std::size_t> opened_place = 0;

  // Once a call counts as ended it needs nothing of this any more.
  GpuDrivers Drivers() {
    return {.may_have_card = [this] { return has_device_file; },
            .list =
                [this] {
                  ++lists;
                  const Result<std::vector<GpuInfo>> said =
                      listing.ok() ? Result<std::vector<GpuInfo>>(devices) : listing;
                  End(list_hangs);
                  return said;
                },
            .open =
                [this](std::size_t place, std::span<const TensorType> types) {
                  EXPECT_EQ(types.size(), 1u);
                  ++opens;
                  opened_place = place;
                  const Status why = opening;
                  End(open_hangs);
                  return Result<TestedGpu>(why);
                }};
  }
  void End(const std::atomic<bool>& hangs) {
    while (hangs) std::this_thread::sleep_for(std::chrono::milliseconds(1));
    ++ended;
  }
  CardOptions Asked(std::string choice) {
    CardOptions options{.choice = std::move(choice)};
    options.drivers = Drivers();
    return options;
  }
  void StopHanging(int calls) {
    list_hangs = open_hangs = false;
    while (ended < calls) std::this_thread::sleep_for(std::chrono::milliseconds(1));
    WaitForDriverCalls();
  }
};

const GpuInfo kSmallCard{.name = "GTX 1650", .platform = "NVIDIA CUDA", .memory = 4_GiB};
const GpuInfo kLargeCard{.name = "RTX 3090", .platform = "NVIDIA CUDA", .memory = 24_GiB};
const GpuInfo kWithinTheProcessor{
    .name = "UHD 770", .platform = "Intel", .memory = 48_GiB, .shares_memory = true};
const GpuInfo kDriverOnTheProcessor{.name = "pthread-cpu",
                                    .platform = "Portable Computing Language",
                                    .memory = 64_GiB,
                                    .is_processor = true,
                                    .shares_memory = true};

// Its name; "" where nothing is found, and then why.
std::string FoundName(const CardOptions& options, std::string* why_none = nullptr) {
  std::string why;
  const auto found = FindCard(options, PlannedCard().layouts, /*open=*/false, why);
  if (why_none != nullptr) *why_none = why;
  if (!found.ok()) return found.status().message();
  return found->has_value() ? (*found)->info.name : "";
}

TEST(FindCardTest, AutoTakesTheLargestCardThatHasMemoryOfItsOwn) {
  MachineForTest machine;
  machine.devices = {kDriverOnTheProcessor, kSmallCard, kWithinTheProcessor, kLargeCard};
  EXPECT_EQ(FoundName(machine.Asked("auto")), "RTX 3090");
  machine.devices = {kLargeCard, kSmallCard};
  EXPECT_EQ(FoundName(machine.Asked("auto")), "RTX 3090");
  EXPECT_EQ(machine.opens, 0);
}

TEST(FindCardTest, AutoGoesOnWithoutWhereThereIsNoCardAndSaysWhy) {
  std::string why;
  MachineForTest machine;
  for (const std::vector<GpuInfo>& devices : std::vector<std::vector<GpuInfo>>{
           {}, {kDriverOnTheProcessor}, {kWithinTheProcessor, kDriverOnTheProcessor}}) {
    machine.devices = devices;
    EXPECT_EQ(FoundName(machine.Asked("auto"), &why), "");
    EXPECT_EQ(why, "no driver has one with memory of its own");
  }
  machine.devices.back().why_no_cuda = machine.devices.front().why_no_cuda =
      "no CUDA: cuInit: (803)";
  EXPECT_EQ(FoundName(machine.Asked("auto"), &why), "");
  EXPECT_EQ(why, "no driver has one with memory of its own; no CUDA: cuInit: (803)");
  machine.listing = Error(Code::kNotFound, "no OpenCL: its loader finds no driver");
  EXPECT_EQ(FoundName(machine.Asked("auto"), &why), "");
  EXPECT_EQ(why, "no OpenCL: its loader finds no driver");
}

TEST(FindCardTest, AutoAsksNoDriverWhereTheSystemHasNoDeviceFileOfACard) {
  std::string why;
  MachineForTest machine;
  machine.has_device_file = false;
  machine.devices = {kLargeCard};
  EXPECT_EQ(FoundName(machine.Asked("auto"), &why), "");
  EXPECT_EQ(why, "");
  EXPECT_EQ(machine.lists, 0);
  EXPECT_EQ(FoundName(machine.Asked("none")), "");
  EXPECT_EQ(machine.lists, 0);
  EXPECT_EQ(FoundName(machine.Asked("rtx")), "RTX 3090");  // whoever names one means it
}

TEST(FindCardTest, ANameTakesWhatItNamesAndTheLargestOfThose) {
  MachineForTest machine;
  machine.devices = {kDriverOnTheProcessor, kSmallCard, kWithinTheProcessor, kLargeCard};
  EXPECT_EQ(FoundName(machine.Asked("gtx")), "GTX 1650");
  EXPECT_EQ(FoundName(machine.Asked("nvidia")), "RTX 3090");
  EXPECT_EQ(FoundName(machine.Asked("uhd")), "UHD 770");
  EXPECT_EQ(FoundName(machine.Asked("portable")), "pthread-cpu");
  EXPECT_THAT(FoundName(machine.Asked("arc")), HasSubstr("--gpu arc: no device is called 'arc'"));
}

TEST(FindCardTest, WhatWasAskedForByNameMustBeFitForUse) {
  std::string why;
  MachineForTest machine;
  machine.devices = {kSmallCard, kLargeCard};
  const ExpertLayouts layouts = PlannedCard().layouts;
  const auto named = FindCard(machine.Asked("rtx"), layouts, true, why);
  EXPECT_EQ(named.status().message(), "--gpu rtx: one wrong bit");
  EXPECT_EQ(machine.opened_place, 1u);
  const auto any = FindCard(machine.Asked("auto"), layouts, true, why);
  ASSERT_TRUE(any.ok());
  EXPECT_FALSE(any->has_value());
  EXPECT_EQ(why, "one wrong bit");
  EXPECT_FALSE(FindCard({}, layouts, true, why)->has_value());
  EXPECT_FALSE(FindCard({.choice = "no such device"}, layouts, true, why).ok());
}

constexpr Nanos kSoon = 20'000'000;

TEST(FindCardTest, ADriverThatHangsWhereItListsItsDevicesIsNotWaitedForLonger) {
  std::vector<std::string> lines;
  SetWarningSink([&](std::string_view line) { lines.emplace_back(line); });
  MachineForTest machine;
  machine.list_hangs = true;
  CardOptions options = machine.Asked("auto");
  options.longest_listing = kSoon;
  std::string why;
  EXPECT_EQ(FoundName(options, &why), "");
  EXPECT_EQ(why, "which devices there are: its driver hangs, for 0.0 s so far");
  EXPECT_THAT(lines, ElementsAre("no card: " + why +
                                 "; the processor goes on alone, with the same answers"));
  options.choice = "rtx";
  EXPECT_EQ(FoundName(options),
            "--gpu rtx: which devices there are: a driver that was asked before still hangs");
  EXPECT_EQ(machine.lists, 1);
  EXPECT_EQ(lines.size(), 1u);
  machine.StopHanging(/*calls=*/1);
  SetWarningSink({});
}

TEST(FindCardTest, ADriverThatHangsWhereACardIsOpenedIsNotWaitedForLonger) {
  std::vector<std::string> lines;
  SetWarningSink([&](std::string_view line) { lines.emplace_back(line); });
  MachineForTest machine;
  machine.devices = {kLargeCard};
  machine.open_hangs = true;
  CardOptions options = machine.Asked("auto");
  options.longest_opening = kSoon;
  const ExpertLayouts layouts = PlannedCard().layouts;
  std::string why;
  EXPECT_FALSE(FindCard(options, layouts, true, why)->has_value());
  EXPECT_THAT(lines, ElementsAre(HasSubstr("no card: RTX 3090: its driver hangs")));
  options.choice = "rtx";
  EXPECT_EQ(FindCard(options, layouts, true, why).status().message(),
            "--gpu rtx: which devices there are: a driver that was asked before still hangs");
  EXPECT_EQ(lines.size(), 1u);
  machine.StopHanging(/*calls=*/2);
  SetWarningSink({});
}

}  // namespace
}  // namespace troupe
