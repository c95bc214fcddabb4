#include "forge/check_values.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <limits>
#include <string>
#include <vector>

#include "gguf/writer.h"
#include "testing/temp_folder.h"

namespace troupe {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

std::vector<std::string> PartsOfModelWith(float value) {
  const TempFolder folder;
  const std::vector<TensorSpec> specs = {{"a.weight", TensorType::kF32, {32}},
                                         {"exps.weight", TensorType::kF32, {32, 2, 3}}};
  GgufWriter writer = GgufWriter::Create(folder.PathOf("m.gguf"), Metadata(), specs).value();
  for (const TensorSpec& spec : specs) {
    std::vector<float> floats(spec.ElementCount(), 1);
    if (spec.name == "exps.weight") floats[32 * 2 + 40] = value;
    EXPECT_TRUE(writer.Append(spec.name, std::as_bytes(std::span(floats))).ok());
  }
  EXPECT_TRUE(writer.Finish().ok());
  return PartsWithoutNumbers(GgufModel::Open(folder.PathOf("m.gguf")).value(), 2).value();
}

TEST(CheckValues, NamesTheExpertWithAWeightThatIsNoNumber) {
  EXPECT_THAT(PartsOfModelWith(2), IsEmpty());
  for (const float value :
       {std::numeric_limits<float>::infinity(), std::numeric_limits<float>::quiet_NaN()}) {
    EXPECT_THAT(PartsOfModelWith(value), ElementsAre("tensor 'exps.weight': expert 1 of 3"));
  }
}

}  // namespace
}  // namespace troupe
