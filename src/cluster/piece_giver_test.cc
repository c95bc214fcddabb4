#include "cluster/piece_giver.h"

#include <gtest/gtest.h>

#include <cstring>
#include <map>
#include <optional>

#include "model/tiny_model_for_test.h"
#include "model/weight_loader.h"

namespace troupe {
namespace {

class PieceGiving : public testing::Test {
 protected:
  PieceGiving() : model_("tiny-olmoe"), part_(model_, model_.AllLayers()) {
    measure_ = MeasureWeights(model_.file(), model_.config()).value();
    held_.Add({0, 1}, Expert(1));
  }

  const Mlp& Expert(std::uint32_t expert) const {
    return part_.weights().layers[0].moe.experts[expert];
  }
  PeerPiece Fetch(std::uint32_t expert, std::uint64_t offset) {
    frame_ = giver_.Answer({.id = 5, .expert = {0, expert}, .offset = offset});
    return DecodePeerPiece(frame_).value();
  }
  PeerFetchRefused::Reason Refused(ExpertId id, std::uint64_t offset) {
    return DecodePeerFetchRefused(giver_.Answer({.id = 5, .expert = id, .offset = offset}))
        .value()
        .reason;
  }

  TinyModel model_;
  ModelPart part_;
  WeightMeasure measure_;
  HeldExperts held_{
      {.layers = model_.config().layers, .experts = model_.config().moe.routing.experts}};
  PieceGiver giver_{held_, measure_.experts,
                    [this](ExpertId id) {
                      return checksums_.contains(id) ? std::optional(checksums_[id]) : std::nullopt;
                    },
                    /*piece_bytes=*/1000};
  std::map<ExpertId, std::uint64_t> checksums_;
  std::vector<std::byte> frame_;
};

TEST_F(PieceGiving, PiecesTogetherAreTheSlotOfTheExpert) {
  const ExpertLayout& layout = measure_.experts[0];
  std::vector<std::byte> bytes;
  int pieces = 0;
  do {
    const PeerPiece piece = Fetch(1, bytes.size());
    EXPECT_EQ(piece.id, 5u);
    EXPECT_EQ(piece.total, layout.SlotBytes());
    EXPECT_EQ(piece.offset, bytes.size());
    bytes.insert(bytes.end(), piece.data.begin(), piece.data.end());
    ++pieces;
  } while (bytes.size() < layout.SlotBytes());
  EXPECT_GT(pieces, 1);
  EXPECT_EQ(giver_.bytes(), bytes.size());
  const Mlp fetched = layout.At(bytes.data());
  EXPECT_EQ(std::memcmp(fetched.gate.data, Expert(1).gate.data, layout.matrices[0].SlotBytes()), 0);
  EXPECT_EQ(std::memcmp(fetched.up.data, Expert(1).up.data, layout.matrices[1].SlotBytes()), 0);
  EXPECT_EQ(std::memcmp(fetched.down.data, Expert(1).down.data, layout.matrices[2].SlotBytes()), 0);
}

TEST_F(PieceGiving, TheHashIsWhatTheContainerTellsOfTheExpertOrNone) {
  held_.Add({0, 2}, Expert(2));
  checksums_[{0, 1}] = 7;
  EXPECT_EQ(Fetch(1, 0).hash, 7u);
  EXPECT_EQ(Fetch(2, 0).hash, kNoHash);
}

TEST_F(PieceGiving, WhatIsNotHeldOrNotThereIsRefused) {
  using Reason = PeerFetchRefused::Reason;
  EXPECT_EQ(Refused({0, 2}, 0), Reason::kNotHeld);
  EXPECT_EQ(Refused({0, 1}, measure_.experts[0].SlotBytes()), Reason::kBad);
  EXPECT_EQ(Refused({99, 0}, 0), Reason::kBad);
  EXPECT_EQ(giver_.bytes(), 0u);
}

}  // namespace
}  // namespace troupe
