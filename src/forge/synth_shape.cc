#include "forge/synth_shape.h"

#include "forge/synth_shapes.h"

namespace troupe {
namespace {

// A quarter of OLMoE-1B-7B: big enough that weights come from memory and not from a cache, small
// enough for every speed run. 976 MB in Q4_0, of which a token touches 142 MB.
ModelShape Small() {
  return {.name = "small",
          .architecture = Architecture::kOlmoe,
          .layers = 16,
          .width = 1024,
          .heads = 16,
          .kv_heads = 16,
          .head_dim = 64,
          .vocabulary = 26112,
          .context = 4096,
          .experts = {{.count = 64, .top_k = 6, .ff = 512}}};
}

const std::vector<ModelShape>& Shapes() {
  static const std::vector<ModelShape> shapes = [] {
    std::vector<ModelShape> all = {Small()};
    for (ModelShape& shape : PublishedShapes()) all.push_back(std::move(shape));
    for (ModelShape& shape : TinyShapes()) all.push_back(std::move(shape));
    return all;
  }();
  return shapes;
}

}  // namespace

const ModelShape* FindShape(std::string_view name) {
  for (const ModelShape& shape : Shapes()) {
    if (shape.name == name) return &shape;
  }
  return nullptr;
}

std::vector<std::string_view> ShapeNames() {
  std::vector<std::string_view> names;
  for (const ModelShape& shape : Shapes()) names.push_back(shape.name);
  return names;
}

}  // namespace troupe
