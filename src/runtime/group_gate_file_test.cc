#include "runtime/group_gate_file.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "forge/synth.h"
#include "io/text_file.h"
#include "store/model_fingerprint.h"
#include "testing/edited_text.h"
#include "testing/temp_folder.h"

namespace troupe {
namespace {

using testing::HasSubstr;

GroupGateFile ExampleGroups() {
  return {.fingerprint = "00ff",
          .text = "book.txt",
          .tokens = 40,
          .model_layers = 2,
          .top_k = 1,
          .looked = 1,
          .gate = {.width = 2,
                   .experts = 4,
                   .groups = 2,
                   .layers = {{.layer = 1,
                               .groups = {{0, 3}, {1, 2}},
                               .weights = {0.5f, -1.25f, 1.0f / 3, 4},
                               .bias = {-0.125f, 2}}}},
          .agreement = {{.divergence = 0.25,
                         .of_nothing = 0.5,
                         .by_looked = {{.joint = 0.75, .product = 0.7, .best_groups = 0.8},
                                       {.joint = 1, .product = 0.9, .best_groups = 1}}}}};
}

// Of the tiny model: every expert of a layer in one of two groups of four, all weights 0.
GroupGateFile GroupsOf(const ModelConfig& config, const std::string& fingerprint) {
  GroupGateFile file = ExampleGroups();
  file.fingerprint = fingerprint;
  file.model_layers = config.layers;
  file.top_k = config.moe.routing.top_k;
  file.gate = {.width = config.width, .experts = config.moe.routing.experts, .groups = 2};
  for (std::uint32_t layer = 0; layer < config.layers; ++layer) {
    file.gate.layers.push_back({.layer = layer,
                                .groups = {{0, 1, 2, 3}, {4, 5, 6, 7}},
                                .weights = std::vector<float>(std::size_t{2} * config.width),
                                .bias = {1, 0}});
  }
  file.agreement.assign(config.layers, file.agreement.front());
  return file;
}

class GroupGateFileTest : public testing::Test {
 protected:
  std::string Saved(const GroupGateFile& file, const std::string& name = "m.groups.json") {
    const std::string path = folder_.path() / name;
    EXPECT_TRUE(SaveGroups(file, path).ok());
    return path;
  }
  GgufModel Model(const char* shape) {
    const std::string path = folder_.path() / "m.gguf";
    EXPECT_TRUE(Synthesize(*FindShape(shape), SynthOptions(), path).ok());
    return GgufModel::Open(path).value();
  }

  TempFolder folder_;
};

TEST_F(GroupGateFileTest, ReadsBackWhatItWrote) {
  const auto read = LoadGroups(Saved(ExampleGroups()));
  ASSERT_TRUE(read.ok()) << read.status().message();
  EXPECT_EQ(*read, ExampleGroups());
  EXPECT_EQ(GroupsPathFor("a/m-00001-of-00002.gguf"), "a/m.groups.json");
}

TEST_F(GroupGateFileTest, WhatIsNoSuchFileOrCannotBeIsRefusedWithItsPlace) {
  const std::string good = ReadWholeText(Saved(ExampleGroups()), 1_MiB).value();
  const auto error = [&](const std::string& from, const std::string& to) {
    const auto read = LoadGroups(folder_.Write("bad", Edited(good, from, to)));
    return read.ok() ? std::string("accepted") : read.status().message();
  };
  EXPECT_EQ(error("\"tokens\":40", "\"tokens\": 40"), "accepted");
  EXPECT_THAT(error("troupe group gate", "troupe buddies"),
              HasSubstr("bad: not a file of a troupe group gate"));
  EXPECT_THAT(error("\"version\":1", "\"version\":2"), HasSubstr("version: 2, expected 1"));
  EXPECT_THAT(error("\"experts\":4", "\"experts\":5000"), HasSubstr("experts: 5000"));
  EXPECT_THAT(error("\"groups\":2", "\"groups\":5"), HasSubstr("groups: 5"));
  EXPECT_THAT(error("\"groups\":2", "\"groups\":3"), HasSubstr("by_layer[0].groups: "));
  EXPECT_THAT(error("\"looked\":1", "\"looked\":3"), HasSubstr("looked: 3"));
  EXPECT_THAT(error("\"layer\":1", "\"layer\":2"), HasSubstr("by_layer[0].layer: 2"));
  EXPECT_THAT(error("[0,3]", "[0,4]"), HasSubstr("groups[0][1]: 4"));
  EXPECT_THAT(error("[0,3]", "[0,2]"), HasSubstr("bad: layer 1: group 1: expert 2"));
  EXPECT_THAT(error("[0,3]", "[0]"), HasSubstr("groups of 3 experts, 4 expected"));
  EXPECT_THAT(error("0.5,-1.25,", "0.5,"), HasSubstr("weights: "));
  EXPECT_THAT(error("0.5,-1.25,", "\"a\",-1.25,"), HasSubstr("weights[0]: "));
  EXPECT_THAT(error("\"joint\":0.75", "\"joint\":1.5"), HasSubstr("by_looked[0].joint: 1.5"));
  for (const std::size_t length : {std::size_t{0}, good.size() / 2}) {
    EXPECT_FALSE(LoadGroups(folder_.Write("cut", good.substr(0, length))).ok());
  }
}

TEST_F(GroupGateFileTest, AGateIsReadFromTheFileBesideTheModelIfThatIsTheModels) {
  const GgufModel model = Model("tiny-qwen2moe");
  const ModelConfig config = ReadModelConfig(model.metadata()).value();
  const auto load = [&](const GateChoice& choice) {
    return LoadGate({.choice = choice}, model, config);
  };
  const GateChoice usual{.by_groups = true};
  EXPECT_THAT(load(usual).status().message(), HasSubstr("m.groups.json: no such file"));
  EXPECT_THAT(load(usual).status().message(), HasSubstr("`troupe calibrate " + model.path()));
  Saved(GroupsOf(config, "another"));
  EXPECT_THAT(load(usual).status().message(), HasSubstr("made for another model"));
  const std::string fingerprint = ToString(FingerprintModel(model).value());
  GroupGateFile wider = GroupsOf(config, fingerprint);
  wider.gate.layers.pop_back();
  wider.agreement.pop_back();
  Saved(wider);
  EXPECT_THAT(load(usual).status().message(), HasSubstr("layers, of width"));

  Saved(GroupsOf(config, fingerprint));
  const auto loaded = load(usual);
  ASSERT_TRUE(loaded.ok()) << loaded.status().message();
  EXPECT_EQ(loaded->choice.looked, 1u);  // as the file says
  EXPECT_THAT(Describe(*loaded), HasSubstr("looks into 1 of 2 groups"));
  EXPECT_THAT(Describe(*loaded), HasSubstr("75.0 %"));
  EXPECT_THAT(load({.by_groups = true, .looked = 2}).status().message(),
              HasSubstr("--gate groups:looked=2: looks into 2 of 2 groups, 1 to 1 expected"));
  EXPECT_TRUE(load({.by_groups = true, .looked = 2, .fusion = GroupFusion::kProduct}).ok());
}

TEST_F(GroupGateFileTest, ARouterThatNoGroupGateCanReplaceIsRefusedBeforeAnyFile) {
  const GgufModel model = Model("tiny-deepseek2");
  const ModelConfig config = ReadModelConfig(model.metadata()).value();
  EXPECT_THAT(LoadGate({.choice = {.by_groups = true}}, model, config).status().message(),
              HasSubstr("m.gguf: the model's router looks into"));
}

TEST(ParseGate, ReadsWhatItPrintsAndNamesWhatIsWrong) {
  for (const char* text :
       {"exact", "groups", "groups:looked=3", "groups:looked=2:fusion=product"}) {
    const auto choice = ParseGate(text);
    ASSERT_TRUE(choice.ok()) << text;
    EXPECT_EQ(ToString(*choice), text);
  }
  EXPECT_EQ(ParseGate("groups:fusion=joint").value(), ParseGate("groups").value());
  const auto message = [](const char* text) { return ParseGate(text).status().message(); };
  EXPECT_THAT(message("teams"), HasSubstr("gate 'teams': exact, or groups"));
  EXPECT_THAT(message("groups:looked=0"), HasSubstr("looked=0 found, a whole number from 1"));
  EXPECT_THAT(message("groups:fusion=sum"), HasSubstr("fusion is joint or product"));
  EXPECT_THAT(message("groups:depth=2"), HasSubstr("no option depth, expected looked, fusion"));
  EXPECT_THAT(message("exact:looked=2"), HasSubstr("looked found, no options expected"));
}

}  // namespace
}  // namespace troupe
