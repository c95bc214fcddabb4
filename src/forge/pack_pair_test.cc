#include "forge/pack_pair.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <filesystem>
#include <string>

#include "forge/synth.h"
#include "io/file.h"
#include "model/weight_loader.h"
#include "quant/dequantize.h"
#include "quant/panel.h"
#include "quant/quantize.h"
#include "runtime/container_layouts.h"
#include "store/container_store.h"
#include "store/model_fingerprint.h"
#include "testing/temp_folder.h"

namespace troupe {
namespace {

using ::testing::Each;
using ::testing::HasSubstr;

std::string SynthPair(const TempFolder& folder, TensorType type) {
  ModelShape shape = *FindShape("tiny-olmoe");
  shape.layers = 2;
  const std::string path = folder.PathOf("m.gguf");
  EXPECT_TRUE(Synthesize(shape, {.layout = {.mix = {.type = type}}}, path).ok());
  return path;
}

std::vector<std::byte> BytesOf(const GgufModel& model, const TensorInfo& tensor) {
  std::vector<std::byte> bytes(tensor.bytes.count());
  EXPECT_TRUE(model.ReadRange(tensor, 0, bytes).ok());
  return bytes;
}

// The original's weights of one layer's gate matrices in another type.
std::vector<std::byte> GatesIn(const GgufModel& original, TensorType type) {
  const TensorInfo& tensor = *original.Find("blk.1.ffn_gate_exps.weight");
  std::vector<float> floats(tensor.ElementCount());
  DequantizeRow(tensor.type, BytesOf(original, tensor), floats);
  std::vector<std::byte> bytes(RowBytes(type, floats.size()).count());
  QuantizeRow(type, floats, bytes, {}, Rounding::kBest);
  return bytes;
}

TEST(HighModelPathFor, NamesTheType) {
  EXPECT_EQ(HighModelPathFor("a/m.gguf", TensorType::kQ4_K), "a/m-q4_k.gguf");
  EXPECT_EQ(HighModelPathFor("m-00001-of-00002.gguf", TensorType::kQ4_0), "m-q4_0.gguf");
  EXPECT_EQ(HighModelPathFor("m", TensorType::kQ4_0), "m-q4_0.gguf");
}

TEST(PackPair, WritesAModelWithExpertsInTheHigherTypeAndTheRestAsItWas) {
  const TempFolder folder;
  const GgufModel original = GgufModel::Open(SynthPair(folder, TensorType::kF16)).value();
  const std::string path = folder.PathOf("high.gguf");
  ASSERT_TRUE(PackPair(original, TensorType::kQ4_0, {.threads = 2, .low = TensorType::kQ2_K}, path,
                       folder.PathOf("high.experts"))
                  .ok());
  const GgufModel high = GgufModel::Open(path).value();
  for (const TensorInfo& tensor : original.tensors()) {
    const TensorInfo& made = *high.Find(tensor.name);
    if (IsExpertMatrix(tensor)) {
      EXPECT_EQ(made.type, TensorType::kQ4_0) << tensor.name;
    } else {
      EXPECT_TRUE(BytesOf(high, made) == BytesOf(original, tensor)) << tensor.name;
    }
  }
  EXPECT_TRUE(BytesOf(high, *high.Find("blk.1.ffn_gate_exps.weight")) ==
              GatesIn(original, TensorType::kQ4_0));
}

// Quantizing what was quantized before would add the errors up.
TEST(PackPair, MakesTheLowerCopyFromTheOriginalWeights) {
  const TempFolder folder;
  const GgufModel original = GgufModel::Open(SynthPair(folder, TensorType::kF16)).value();
  ASSERT_TRUE(PackPair(original, TensorType::kQ4_0, {.low = TensorType::kQ2_K},
                       folder.PathOf("high.gguf"), folder.PathOf("high.experts"))
                  .ok());
  const ReadFile file = ReadFile::Open(folder.PathOf("high.experts")).value();
  const ContainerIndex index = ReadContainerIndex(file).value();
  ASSERT_EQ(index.precisions.size(), 2u);
  EXPECT_THAT(index.precisions[0][1].types, Each(TensorType::kQ4_0));
  const ContainerLayer& low = index.precisions[1][1];
  EXPECT_THAT(low.types, Each(TensorType::kQ2_K));

  const TensorInfo& gates = *original.Find("blk.1.ffn_gate_exps.weight");
  const std::size_t rows = gates.dims[1], cols = gates.dims[0];
  const std::vector<std::byte> all = GatesIn(original, TensorType::kQ2_K);
  const std::size_t expert_bytes = rows * RowBytes(TensorType::kQ2_K, cols).count();
  for (std::uint32_t e = 0; e < index.experts; ++e) {
    std::vector<std::byte> expected(PanelBytes(TensorType::kQ2_K, rows, cols)), found(expected);
    PackPanels(TensorType::kQ2_K, rows, cols,
               std::span(all).subspan(e * expert_bytes, expert_bytes), expected);
    ASSERT_TRUE(file.ReadAt(low.OffsetOf(e), found).ok());
    EXPECT_TRUE(found == expected) << "expert " << e;
  }
}

// Rows of 128 fit no block of 256.
TEST(PackPair, CountsWhatFallsBackInEitherCopy) {
  const TempFolder folder;
  ModelShape shape = *FindShape("tiny-olmoe");
  shape.layers = 1;
  shape.experts->ff = 128;  // the rows of the down matrices
  ASSERT_TRUE(
      Synthesize(shape, {.layout = {.mix = {.type = TensorType::kF16}}}, folder.PathOf("m.gguf"))
          .ok());
  const GgufModel original = GgufModel::Open(folder.PathOf("m.gguf")).value();
  const auto pack = [&](TensorType high, TensorType low) {
    return PackPair(original, high, {.low = low, .rounding = Rounding::kPlain},
                    folder.PathOf("h.gguf"), folder.PathOf("h.experts"))
        .value();
  };
  const PackPairReport both = pack(TensorType::kQ4_K, TensorType::kQ2_K);
  EXPECT_EQ(both.model.fallbacks, 1u);
  EXPECT_EQ(both.container.fallbacks, 1u);
  const PackPairReport low_alone = pack(TensorType::kQ8_0, TensorType::kQ2_K);
  EXPECT_EQ(low_alone.model.fallbacks, 0u);
  EXPECT_EQ(low_alone.container.fallbacks, 1u);
}

TEST(PackPair, RefusesWeightsThatLostTooMuchAlready) {
  const TempFolder folder;
  const GgufModel original = GgufModel::Open(SynthPair(folder, TensorType::kQ4_K)).value();
  EXPECT_THAT(
      PackPair(original, TensorType::kQ4_0, {}, folder.PathOf("h.gguf"), folder.PathOf("h.experts"))
          .status()
          .message(),
      HasSubstr("is Q4_K; two precisions are made from F32, F16, BF16 or Q8_0"));
  EXPECT_EQ(folder.Count(), 1u);
}

TEST(PackPair, LeavesNothingBehindIfTheContainerCannotBeMade) {
  const TempFolder folder;
  const GgufModel original = GgufModel::Open(SynthPair(folder, TensorType::kF16)).value();
  // A low copy that is no smaller than the high one.
  EXPECT_THAT(PackPair(original, TensorType::kQ4_0, {.low = TensorType::kQ8_0},
                       folder.PathOf("h.gguf"), folder.PathOf("h.experts"))
                  .status()
                  .message(),
              HasSubstr("a smaller type expected"));
  EXPECT_EQ(folder.Count(), 1u);
}

// A pair that was made before, of weights of another seed, and everything it needs to be made anew.
class PackPairOverAnOldOne : public ::testing::Test {
 protected:
  // Fitting scales takes its time: the old pair is made once.
  static void SetUpTestSuite() {
    const TempFolder folder;
    MakeOriginal(folder, 7);
    const GgufModel original = GgufModel::Open(folder.PathOf("m.gguf")).value();
    ASSERT_TRUE(PackPair(original, TensorType::kQ8_0, {.low = TensorType::kQ4_0},
                         folder.PathOf("h.gguf"), folder.PathOf("h.experts"))
                    .ok());
    old_model_ = folder.Read("h.gguf");
    old_container_ = folder.Read("h.experts");
  }

  void SetUp() override {
    folder_.Write("h.gguf", old_model_);
    folder_.Write("h.experts", old_container_);
    MakeOriginal(folder_, 8);
  }

  static void MakeOriginal(const TempFolder& folder, std::uint64_t seed) {
    ModelShape shape = *FindShape("tiny-olmoe");
    shape.layers = 2;
    shape.experts->ff *= 2;  // the container becomes larger than the model
    const SynthOptions options = {.layout = {.mix = {.type = TensorType::kF16}}, .seed = seed};
    ASSERT_TRUE(Synthesize(shape, options, folder.PathOf("m.gguf")).ok());
  }

  Status Pack(const PackOptions& options, std::string_view container = "h.experts") const {
    const GgufModel original = GgufModel::Open(folder_.PathOf("m.gguf")).value();
    return PackPair(original, TensorType::kQ8_0, options, folder_.PathOf("h.gguf"),
                    folder_.PathOf(container))
        .status();
  }
  bool OldPairIsThere() const {
    return folder_.Read("h.gguf") == old_model_ && folder_.Read("h.experts") == old_container_;
  }

  static inline std::string old_model_, old_container_;
  TempFolder folder_;
};

TEST_F(PackPairOverAnOldOne, ARefusalLeavesTheOldPairAndConvertsNothing) {
  std::size_t reports = 0;
  PackOptions no_smaller = {.low = TensorType::kQ8_0,
                            .progress = [&](Bytes, Bytes) { return ++reports > 0; }};
  EXPECT_THAT(Pack(no_smaller).message(), HasSubstr("a smaller type expected"));
  PackOptions fine = no_smaller;
  fine.low = TensorType::kQ4_0;
  EXPECT_FALSE(Pack(fine, "no-such-folder/h.experts").ok());
  EXPECT_THAT(Pack(fine, "m.gguf").message(), HasSubstr("another name expected"));
  EXPECT_THAT(Pack(fine, "h.gguf").message(), HasSubstr("another one expected for its container"));
  EXPECT_EQ(reports, 0u);
  EXPECT_TRUE(OldPairIsThere());
  EXPECT_EQ(folder_.Count(), 3u);
}

TEST_F(PackPairOverAnOldOne, TheOldPairStaysUntilBothFilesAreComplete) {
  std::size_t reports = 0;
  ASSERT_TRUE(Pack({.low = TensorType::kQ4_0,
                    .progress =
                        [&](Bytes, Bytes) {
                          ++reports;
                          EXPECT_TRUE(OldPairIsThere());
                          return true;
                        }})
                  .ok());
  EXPECT_GT(reports, 2u);
  EXPECT_TRUE(folder_.Read("h.gguf") != old_model_);  // not EXPECT_NE: megabytes are no message
  EXPECT_TRUE(folder_.Read("h.experts") != old_container_);
  EXPECT_EQ(folder_.Count(), 3u);
}

TEST_F(PackPairOverAnOldOne, ADiskThatFillsUpBesideTheContainerLeavesTheOldPair) {
  ASSERT_GT(old_container_.size(), old_model_.size());
  const pid_t child = ::fork();
  ASSERT_GE(child, 0);
  if (child == 0) {
    // A limit on a file's size stands in for it: the model fits, the container does not.
    ::signal(SIGXFSZ, SIG_IGN);
    const rlim_t most = old_container_.size() - 1;
    const rlimit limit = {.rlim_cur = most, .rlim_max = most};
    ::setrlimit(RLIMIT_FSIZE, &limit);
    ::_exit(Pack({.low = TensorType::kQ4_0}).code() == Code::kResourceExhausted ? 0 : 1);
  }
  int how = 0;
  ASSERT_EQ(::waitpid(child, &how, 0), child);
  EXPECT_TRUE(WIFEXITED(how) && WEXITSTATUS(how) == 0);
  EXPECT_TRUE(OldPairIsThere());
  EXPECT_EQ(folder_.Count(), 3u);
}

// What a kill between the two names leaves: the new model is whole, and the old container not its.
TEST_F(PackPairOverAnOldOne, AStopBetweenTheTwoNamesLeavesAContainerThatIsRefused) {
  int ends = 0;                                         // of the conversion, then of packing
  const auto progress = [&](Bytes done, Bytes total) {  // a folder cannot be replaced by a file
    if (done == total && ++ends == 2) {
      std::filesystem::create_directory(folder_.PathOf("c.experts"));
    }
    return true;
  };
  const Status status = Pack({.low = TensorType::kQ4_0, .progress = progress}, "c.experts");
  EXPECT_THAT(status.message(), HasSubstr("c.experts"));
  EXPECT_TRUE(folder_.Read("h.gguf") != old_model_);  // not EXPECT_NE: megabytes are no message
  EXPECT_TRUE(folder_.Read("h.experts") == old_container_);
  const GgufModel model = GgufModel::Open(folder_.PathOf("h.gguf")).value();
  const ModelFingerprint fingerprint = FingerprintModel(model).value();
  EXPECT_THAT(ContainerStore::Open(folder_.PathOf("h.experts"), fingerprint, kPanelLayoutVersion)
                  .status()
                  .message(),
              HasSubstr("packed from another model"));
}

TEST(PackedPair, RefusesASecondCopyOfAnotherModel) {
  const TempFolder one, other;
  const GgufModel model = GgufModel::Open(SynthPair(one, TensorType::kF16)).value();
  ModelShape wider = *FindShape("tiny-olmoe");
  wider.layers = 2;
  wider.experts->ff *= 2;
  const std::string path = other.PathOf("m.gguf");
  ASSERT_TRUE(Synthesize(wider, {.layout = {.mix = {.type = TensorType::kF16}}}, path).ok());
  const GgufModel stranger = GgufModel::Open(path).value();
  EXPECT_THAT(PackModel(model, {.low = TensorType::kQ4_0, .low_from = &stranger}, one.PathOf("o"))
                  .status()
                  .message(),
              HasSubstr("experts of other shapes"));
}

}  // namespace
}  // namespace troupe
