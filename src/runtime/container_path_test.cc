#include "runtime/container_path.h"

#include <gtest/gtest.h>

namespace troupe {
namespace {

TEST(ContainerPath, LiesBesideTheModelUnderItsName) {
  EXPECT_EQ(ContainerPathFor("m.gguf"), "m.experts");
  EXPECT_EQ(ContainerPathFor("/a.gguf/mixtral-8x7b.Q4_K.gguf"),
            "/a.gguf/mixtral-8x7b.Q4_K.experts");
}

TEST(ContainerPath, IsTheSameForEveryPartOfASplitModel) {
  EXPECT_EQ(ContainerPathFor("d/m-00001-of-00003.gguf"), "d/m.experts");
  EXPECT_EQ(ContainerPathFor("d/m-00003-of-00003.gguf"), "d/m.experts");
  EXPECT_EQ(ContainerPathFor("m-00004-of-00003.gguf"), "m-00004-of-00003.experts");  // no such part
}

TEST(ContainerPath, TakesNothingButGgufOffAName) {
  EXPECT_EQ(ContainerPathFor("model-1.5b"), "model-1.5b.experts");
  EXPECT_EQ(ContainerPathFor("d.gguf/m"), "d.gguf/m.experts");
}

}  // namespace
}  // namespace troupe
