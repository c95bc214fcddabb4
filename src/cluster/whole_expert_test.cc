#include "cluster/whole_expert.h"

#include <gtest/gtest.h>

#include <vector>

#include "model/tiny_model_for_test.h"
#include "model/weight_loader.h"
#include "store/container_format.h"

namespace troupe {
namespace {

TEST(WholeExpert, HasTheChecksumOfItsSlotUntilABitOfItFlips) {
  const TinyModel model("tiny-olmoe");
  const ModelPart part(model, model.AllLayers());
  const WeightMeasure measure = MeasureWeights(model.file(), model.config()).value();
  const ExpertLayout& layout = measure.experts[0];
  const Mlp& expert = part.weights().layers[0].moe.experts[1];
  std::vector<std::byte> slot(layout.SlotBytes());
  layout.CopySlot(expert, 0, slot);
  const std::uint64_t checksum = ContainerChecksum(slot);
  EXPECT_TRUE(HasChecksum(layout, expert, checksum));
  EXPECT_TRUE(HasChecksum(layout, layout.At(slot.data()), checksum));
  EXPECT_FALSE(HasChecksum(layout, part.weights().layers[0].moe.experts[2], checksum));
  slot[slot.size() / 2] ^= std::byte{0x10};
  EXPECT_FALSE(HasChecksum(layout, layout.At(slot.data()), checksum));
}

}  // namespace
}  // namespace troupe
