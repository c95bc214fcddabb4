#include "expert/flow/miss_timeline.h"

#include <gtest/gtest.h>

#include <array>

namespace troupe {
namespace {

// A byte a second, so that sizes read as seconds.
LayerMisses Layer() { return {.medium = {.latency_seconds = 1, .bytes_per_second = 1}}; }

TEST(MissTimeline, LoadsPassTheMediumOneAfterTheOtherAndTheirLatenciesAtOnce) {
  const LayerMisses layer = Layer();
  MissTimeline timeline(layer);
  MissTimeline::Moment moment = timeline.Begin();
  EXPECT_EQ(timeline.Add({.full = 10_B}, {MissAnswer::kLoad}, moment), 11);
  EXPECT_EQ(timeline.Add({.full = 10_B}, {MissAnswer::kLoad}, moment), 21);
  EXPECT_EQ(moment.Seconds(), 21);
}

TEST(MissTimeline, WhatTheMediumHasToDoAlreadyComesFirst) {
  LayerMisses layer = Layer();
  layer.medium.queued = 5_B;
  MissTimeline timeline(layer);
  MissTimeline::Moment moment = timeline.Begin();
  EXPECT_EQ(timeline.Add({.full = 10_B, .loading = 3_B}, {MissAnswer::kWait}, moment), 9);
  EXPECT_EQ(timeline.Add({.full = 10_B}, {MissAnswer::kLoad}, moment), 19);
}

TEST(MissTimeline, ALoadUnderWayTakesTheMediumEvenIfNobodyWaitsForIt) {
  LayerMisses layer = Layer();
  MissTimeline timeline(layer);
  MissTimeline::Moment moment = timeline.Begin();
  timeline.Add({.loading = 3_B, .drop_price = 1.0}, {MissAnswer::kDrop}, moment);
  EXPECT_EQ(timeline.Add({.full = 10_B}, {MissAnswer::kLoad}, moment), 14);
}

TEST(MissTimeline, AnExpertIsComputedOnceItHasComeAndTheOneBeforeItIsDone) {
  LayerMisses layer = Layer();
  layer.local = {.busy_seconds = 4, .first_row_seconds = 6, .further_row_seconds = 2};
  MissTimeline timeline(layer);
  MissTimeline::Moment moment = timeline.Begin();
  // Comes at 3, while residents are computed.
  EXPECT_EQ(timeline.Add({.rows = 1, .full = 2_B}, {MissAnswer::kLoad}, moment), 10);
  // Comes at 5.
  EXPECT_EQ(timeline.Add({.rows = 3, .full = 2_B}, {MissAnswer::kLoad}, moment), 20);
  // Comes at 95.
  EXPECT_EQ(timeline.Add({.rows = 1, .full = 90_B}, {MissAnswer::kLoad}, moment), 101);
}

TEST(MissTimeline, SubstitutedRowsAreComputedWhileOthersAreLoaded) {
  LayerMisses layer = Layer();
  layer.local = {.first_row_seconds = 5, .further_row_seconds = 3};
  MissTimeline timeline(layer);
  MissTimeline::Moment moment = timeline.Begin();
  timeline.Add({.full = 20_B}, {MissAnswer::kLoad}, moment);
  timeline.Add({.rows = 2, .substitute_price = 0.5}, {MissAnswer::kSubstitute}, moment);
  EXPECT_EQ(moment.Seconds(), 26);  // 21 and 5, with 6 hidden before
  EXPECT_EQ(moment.price, 1);
}

TEST(MissTimeline, APlaceWorksThroughItsQueueAndItsAnswersTravelAtOnce) {
  LayerMisses layer = Layer();
  const std::array places = {Place{.name = "peer",
                                   .latency_seconds = 10,
                                   .expert_seconds = 1,
                                   .row_seconds = 2,
                                   .queued_seconds = 4},
                             Place{.name = "other", .row_seconds = 1}};
  layer.places = places;
  MissTimeline timeline(layer);
  MissTimeline::Moment moment = timeline.Begin();
  EXPECT_EQ(timeline.EndAt(0, {.rows = 2}), 19);
  EXPECT_EQ(timeline.Add({.rows = 2}, {MissAnswer::kElsewhere, 0}, moment), 19);
  EXPECT_EQ(timeline.Add({.rows = 1}, {MissAnswer::kElsewhere, 0}, moment), 22);
  EXPECT_EQ(timeline.Add({.rows = 7}, {MissAnswer::kElsewhere, 1}, moment), 7);
  EXPECT_EQ(moment.Seconds(), 22);
}

TEST(MissTimeline, CostIsTimeAndWhatTheLossIsWorth) {
  LayerMisses layer = Layer();
  layer.loss = {.row_price = 1, .seconds_per_price = 100};
  MissTimeline timeline(layer);
  MissTimeline::Moment moment = timeline.Begin();
  timeline.Add({.rows = 3, .full = 8_B, .low = 4_B, .low_price = 0.01}, {MissAnswer::kLoadLow},
               moment);
  EXPECT_DOUBLE_EQ(timeline.Cost(moment), 5 + 3);
}

}  // namespace
}  // namespace troupe
