#include "cluster/virtual_users_for_test.h"

#include <algorithm>

#include "cluster/virtual_node_for_test.h"
#include "cluster/virtual_rules_for_test.h"

namespace troupe {

ExpertBatch VirtualUsers::Batch() const {
  return {.layer = layer_,
          .demands = demands_,
          .input = {.tokens = values_.size() / VirtualModel::kWidth,
                    .cols = VirtualModel::kWidth,
                    .values = values_.data(),
                    .stride = VirtualModel::kWidth},
          .rows = rows_,
          .first_row = first_row_};
}

void VirtualUsers::AskLayer(bool ask) {
  if (waits()) return;
  ++layers_;
  since_ = world_.time.now();
  layer_ = VirtualModel::kFirstLayer + static_cast<std::uint32_t>(world_.rng.Below(2));
  const std::size_t rows = 1 + world_.rng.Below(3);
  values_.resize(rows * VirtualModel::kWidth);
  for (float& value : values_) value = static_cast<float>(1 + world_.rng.Below(1000));
  rows_.clear();
  demands_.clear();
  first_row_ = {0};
  for (std::uint32_t expert = 0; expert < VirtualModel::kGrid.experts; ++expert) {
    const std::size_t before = rows_.size();
    for (std::uint32_t row = 0; row < rows; ++row) {
      if (ask || world_.rng.Below(3) == 0) rows_.push_back(row);
    }
    first_row_.push_back(static_cast<std::uint32_t>(rows_.size()));
    if (rows_.size() == before) continue;
    demands_.push_back(
        {.expert = expert, .tokens = static_cast<std::uint32_t>(rows_.size() - before)});
    wanted_.insert(expert);
  }
  Want(ask);
  EndIfDone();
}

void VirtualUsers::Want(bool ask) {
  PeerCalls& calls = node_.calls();
  calls.OnAsked(Batch(), RowForm::kFloat);
  const std::span<const Place> places = calls.Places();
  std::vector<AnsweredElsewhere> elsewhere;
  for (const std::uint32_t expert : std::set<std::uint32_t>(wanted_)) {
    const ExpertId id{layer_, expert};
    if (node_.held().Holds(id)) {
      Give(expert, Computed(expert, VirtualModel::FactorOf(node_.held().Find(id)->weights())));
      continue;
    }
    const auto holders = calls.HoldersOf(id);
    if (holders.empty() || (!ask && world_.rng.Below(4) == 0)) {
      Load(expert);
      continue;
    }
    TROUPE_CHECK(!places.empty());
    elsewhere.push_back({.expert = expert, .place = holders[world_.rng.Below(holders.size())]});
  }
  if (!elsewhere.empty()) calls.Ask(Batch(), elsewhere);
}

void VirtualUsers::Load(std::uint32_t expert) {
  loading_.insert(expert);
  node_.After(node_.DiskTime(), [this, expert, layers = layers_] {
    if (layers_ != layers || !loading_.contains(expert)) return;  // a peer was sooner
    loading_.erase(expert);
    Loaded(expert);
    Go();
    EndIfDone();
  });
}

void VirtualUsers::Loaded(std::uint32_t expert) {
  if (node_.DiskFails()) {
    world_.events.Count("loads that fail");
    // A pass would fail where nobody holds it: here the disk is tried again.
    if (!node_.calls().AskInPlaceOfDisk(Batch(), expert)) Load(expert);
    return;
  }
  node_.calls().OnLoaded(expert);
  Give(expert, Computed(expert, VirtualWorld::model().FactorOf({layer_, expert})));
}

std::vector<float> VirtualUsers::Computed(std::uint32_t expert, float factor) const {
  std::vector<float> rows;
  for (const std::uint32_t row : Batch().RowsOf(expert)) {
    for (std::size_t col = 0; col < VirtualModel::kWidth; ++col) {
      rows.push_back(factor * values_[row * VirtualModel::kWidth + col]);
    }
  }
  return rows;
}

void VirtualUsers::Go() {
  if (!waits() || !node_.calls().waiting()) return;
  const ExpertPeers::News news = node_.calls().Take();
  for (const ExpertPeers::Rows& rows : news.answered) {
    loading_.erase(rows.expert);
    given_by_peers_ += 1;
    Give(rows.expert, rows.values);
  }
  for (const std::uint32_t expert : news.to_load) {
    if (wanted_.contains(expert)) Load(expert);
  }
  EndIfDone();
}

void VirtualUsers::Give(std::uint32_t expert, std::span<const float> rows) {
  world_.rules->OnGiven(node_, {layer_, expert}, wanted_.erase(expert) == 1, Batch(), rows);
  ++given_;
}

void VirtualUsers::EndIfDone() {
  if (waits()) return;
  loading_.clear();
  node_.calls().Forget();
}

}  // namespace troupe
