// The end's part of a cut prompt, for tests of the cloud's: rows of the first layers of a small
// model, and the messages that they cross in.
#pragma once

#include <gtest/gtest.h>

#include <cstring>
#include <memory>
#include <string>
#include <vector>

#include "api/tiny_model_for_test.h"
#include "runtime/part_runner.h"
#include "split/codec/keys_frame.h"
#include "split/codec/state_codec.h"

namespace troupe {

class LowerLayers {
 public:
  explicit LowerLayers(std::uint32_t layer)
      : layer_(layer),
        engine_(Engine::Open(kPath, {.threads = 1, .context = 96}).value()),
        runner_(PartRunner::Create(*engine_, {.layers = {0, layer}, .positions = 96}).value()) {}

  // Of a whole prompt.
  std::vector<float> RowsOf(const std::vector<TokenId>& prompt) {
    std::unique_ptr<PartRunner::Sequence> sequence = runner_.Open(prompt.size());
    const PartRunner::Rows rows{.sequence = sequence.get(), .tokens = prompt};
    EXPECT_TRUE(runner_.Run({0, layer_}, {&rows, 1}).ok());
    std::vector<float> stream(runner_.Stream().begin(), runner_.Stream().end());
    runner_.Close(std::move(sequence));
    return stream;
  }
  // Rows first to first + count of these.
  std::string Message(const std::vector<float>& rows, std::size_t first, std::size_t count,
                      StateCode code = {}) {
    const std::size_t width = runner_.width();
    const auto basis =
        std::make_shared<const CutBasis>(PlainBasis(layer_, static_cast<std::uint32_t>(width)));
    StateEncoder encoder = StateEncoder::Create(basis, code).value();
    const std::vector<std::byte> bytes = encoder.Encode(
        static_cast<std::uint32_t>(first), std::span(rows).subspan(first * width, count * width));
    return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
  }
  // Its keys and values of the first tokens, whole tiles, in messages of a layer each.
  std::vector<std::string> KeysOf(const std::vector<TokenId>& prompt, std::size_t prefix) {
    std::unique_ptr<PartRunner::Sequence> sequence = runner_.Open(prompt.size());
    const PartRunner::Rows rows{.sequence = sequence.get(), .tokens = prompt};
    EXPECT_TRUE(runner_.Run({0, layer_}, {&rows, 1}).ok());
    std::vector<std::string> messages;
    const KeysRange range{.layers = {0, layer_}, .first = 0, .positions = prefix};
    for (const KeysPart& part : runner_.Keys(*sequence, range, /*most_bytes=*/1)) {
      messages.push_back(KeysMessage({.type = runner_.pool().type(),
                                      .first_layer = part.range.layers.first,
                                      .layers = part.range.layers.size(),
                                      .first = 0,
                                      .positions = static_cast<std::uint32_t>(prefix)},
                                     part.bytes));
    }
    runner_.Close(std::move(sequence));
    return messages;
  }
  static std::string KeysMessage(const KeysFrame& frame, std::span<const std::byte> keys) {
    const std::vector<std::byte> bytes = EncodeKeys(frame, keys);
    return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
  }
  // Of that code, without anything fitted.
  std::uint64_t DigestOfPlain(StateCode code = {}) {
    return DigestOf(PlainBasis(layer_, static_cast<std::uint32_t>(runner_.width())), code);
  }

 private:
  const std::uint32_t layer_;
  std::unique_ptr<Engine> engine_;
  PartRunner runner_;
};

}  // namespace troupe
