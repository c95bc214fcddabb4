// One node that asks and some that answer, in one process: the frames that would go over links are
// handed over by hand, and a test may drop, delay or damage them.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <utility>
#include <vector>

#include "base/rng.h"
#include "cluster/peer_calls.h"
#include "cluster/peer_host.h"
#include "kernels/quantize_activations.h"
#include "model/tiny_model_for_test.h"

namespace troupe {

// A layer of rows, each of which chose some experts: what a pass asks for.
class AskedLayer {
 public:
  AskedLayer(const ModelConfig& config, std::uint32_t layer, std::size_t rows, Rng& rng)
      : layer_(layer), values_(rows * config.width), codes_(ActivationBytes(rows, config.width)) {
    for (float& value : values_) value = static_cast<float>(rng.Normal());
    input_ = MakeActivations(values_.data(), config.width, rows, config.width, codes_);
    for (std::size_t row = 0; row < rows; ++row) QuantizeActivationsReference(input_, row);
    const std::uint32_t experts = config.moe.routing.experts;
    first_.assign(experts + 1, 0);
    for (std::uint32_t expert = 0; expert < experts; ++expert) {
      for (std::uint32_t row = 0; row < rows; ++row) {
        if (rng.Below(3) == 0) rows_.push_back(row);
      }
      first_[expert + 1] = static_cast<std::uint32_t>(rows_.size());
    }
  }

  ExpertBatch batch() const {
    return {.layer = layer_, .demands = {}, .input = input_, .rows = rows_, .first_row = first_};
  }
  // Those that any row has chosen.
  std::vector<std::uint32_t> experts() const {
    std::vector<std::uint32_t> experts;
    for (std::uint32_t expert = 0; expert + 1 < first_.size(); ++expert) {
      if (first_[expert + 1] > first_[expert]) experts.push_back(expert);
    }
    return experts;
  }

 private:
  std::uint32_t layer_;
  std::vector<float> values_;
  std::vector<std::byte> codes_;
  Activations input_;
  std::vector<std::uint32_t> rows_, first_;
};

// What is done with a frame in place of handing it over. May be changed while frames fly: once it
// is, nothing of the one before runs any more.
class Diversion {
 public:
  using Instead = std::function<Status(LinkId, std::vector<std::byte>)>;

  Diversion& operator=(Instead instead) {
    const std::lock_guard lock(mu_);
    instead_ = std::move(instead);
    return *this;
  }
  // Whether there is one; `status` is then what it says.
  bool Takes(LinkId link, const std::vector<std::byte>& frame, Status& status) {
    const std::lock_guard lock(mu_);
    if (!instead_) return false;
    status = instead_(link, frame);
    return true;
  }

 private:
  std::recursive_mutex mu_;  // what it does may send
  Instead instead_;
};

class TwoNodes {
 public:
  explicit TwoNodes(TensorType type = TensorType::kQ4_0, std::size_t hosts = 1,
                    std::size_t most_of_one_message = std::size_t{256} << 10)
      : model_("tiny-olmoe", type), part_(model_, model_.AllLayers()) {
    const ModelConfig& config = model_.config();
    const Mlp& any = Expert({0, 0});
    shape_ = {.grid = {.layers = config.layers, .experts = config.moe.routing.experts},
              .width = static_cast<std::uint32_t>(config.width),
              .forms = std::vector<RowForm>(
                  config.layers,
                  ReadsCodesAlone(any.gate.type, any.up.type) ? RowForm::kInt8 : RowForm::kFloat)};
    calls_ = std::make_unique<PeerCalls>(
        shape_, directory_,
        [this](LinkId link, std::vector<std::byte> frame) {
          Status status;
          if (!on_ask.Takes(link, frame, status)) Deliver(link, std::move(frame));
          return status;
        },
        clock_,
        PeerCalls::Options{
            .rules = {.late_after = 2, .least = 200'000'000, .given_up_after = 10'000},
            .verify = 1});
    for (std::size_t host = 0; host < hosts; ++host) {
      const LinkId link = host + 1;
      held_.push_back(std::make_unique<HeldExperts>(shape_.grid));
      hosts_.push_back(
          PeerHost::Create(shape_, *held_[host],
                           ExpertHost::Create(*held_[host], config.moe.expert_ff, 1).value(),
                           [this](LinkId to, std::vector<std::byte> frame) {
                             Status status;
                             if (!on_answer.Takes(to, frame, status)) {
                               calls_->OnFrame(to, std::move(frame));
                             }
                             return status;
                           },
                           clock_, {.most_waiting = 4, .most_of_one_message = most_of_one_message})
              .value());
      directory_.OnCame("host" + std::to_string(host), link, /*start=*/link, 1e-6);
    }
  }
  ~TwoNodes() { hosts_.clear(); }

  const Mlp& Expert(ExpertId id) const {
    return part_.weights().layers[id.layer].moe.experts[id.expert];
  }
  void Hold(std::size_t host, std::uint32_t layer, const std::vector<std::uint32_t>& experts) {
    for (const std::uint32_t expert : experts) {
      held_[host]->Add({layer, expert}, Expert({layer, expert}));
    }
    Tell(host);
  }
  void Tell(std::size_t host) {
    ExpertBits bits(shape_.grid);
    for (std::uint32_t layer = 0; layer < shape_.grid.layers; ++layer) {
      for (std::uint32_t expert = 0; expert < shape_.grid.experts; ++expert) {
        if (held_[host]->Holds({layer, expert})) bits.Add({layer, expert});
      }
    }
    directory_.OnHoldings(host + 1, bits);
  }
  void Deliver(LinkId link, std::vector<std::byte> frame) {
    if (const auto cancel = DecodePeerCancel(frame); cancel.ok()) {
      return hosts_[link - 1]->OnCancel(link, cancel->call);
    }
    hosts_[link - 1]->OnAsk(link, std::move(frame));
  }
  // The rows of an expert as this node would compute them.
  std::vector<float> Alone(const AskedLayer& asked, std::uint32_t expert) {
    const ExpertBatch batch = asked.batch();
    std::vector<float> out(batch.RowsOf(expert).size() * shape_.width);
    ExpertMlp mlp = ExpertMlp::Create(model_.config().moe.expert_ff, out.size()).value();
    mlp.Run(Expert({batch.layer, expert}), batch.input, batch.RowsOf(expert), out, part_.threads());
    return out;
  }

  const ModelConfig& config() const { return model_.config(); }
  PeerCalls& calls() { return *calls_; }
  PeerDirectory& directory() { return directory_; }
  PeerHost& host(std::size_t i) { return *hosts_[i]; }
  HeldExperts& held(std::size_t i) { return *held_[i]; }
  const CallShape& shape() const { return shape_; }

  Diversion on_ask, on_answer;

 private:
  TinyModel model_;
  ModelPart part_;
  MonotonicClock clock_;
  CallShape shape_;
  PeerDirectory directory_;
  std::unique_ptr<PeerCalls> calls_;
  std::vector<std::unique_ptr<HeldExperts>> held_;
  std::vector<std::unique_ptr<PeerHost>> hosts_;
};

}  // namespace troupe
