// What nvcc made of the kernels: every program and kernel that is asked for, and no operation but
// those that were written, each rounded as they say. What a driver then makes of PTX is its own,
// and this says nothing of it.
#include <gmock/gmock.h>

#include <cstdlib>
#include <set>
#include <string>

#include "gpu/cuda_images.h"
#include "gpu/kernel_source.h"
#include "gpu/ptx_for_test.h"
#include "testing/temp_folder.h"

namespace troupe {
namespace {

using testing::HasSubstr;
using testing::IsEmpty;
using testing::Not;

std::string_view PtxOf(std::string_view program) {
  for (const CudaImage& image : CudaImages()) {
    if (image.program == program) return image.ptx;
  }
  return "";
}

// Whether nvcc makes `to` of a file.
bool Compiles(const std::string& options, const std::string& file, const std::string& to) {
  const std::string command = std::string(std::getenv("TROUPE_NVCC")) + " " + options + " -o " +
                              to + " " + file + " 2>/dev/null";
  return std::system(command.c_str()) == 0;
}

std::string PtxBy(const std::string& options, const std::string& program) {
  const TempFolder folder;
  EXPECT_TRUE(Compiles("-ptx -arch=compute_75 --diag-suppress 177 " + options,
                       std::getenv("TROUPE_CUDA_PROGRAMS") + ("/" + program + ".cu"),
                       folder.PathOf("made.ptx")))
      << program << " " << options;
  return folder.Read("made.ptx");
}

TEST(CudaImages, AreThereForEveryProgramWithEveryKernel) {
  std::set<std::string> programs;
  for (const GpuProgram& program : AllPrograms(kCudaNamesText)) {
    programs.insert(program.source.name);
    for (const std::string_view kernel : program.kernels) {
      EXPECT_THAT(EntriesOf(PtxOf(program.source.name)), testing::Contains(std::string(kernel)))
          << program.source.name;
    }
  }
  EXPECT_EQ(programs.size(), AllTensorTypes().size() + 2) << "each type, common, buddies";
  EXPECT_EQ(CudaImages().size(), programs.size()) << "and no other";
}

TEST(CudaImages, RoundEachOperationAsItIsWrittenAndContractNone) {
  for (const CudaImage& image : CudaImages()) {
    EXPECT_THAT(RoundedOtherwise(image.ptx), IsEmpty()) << image.program;
  }
}

TEST(CudaImages, HaveTheFusedOperationsThatAreWrittenAndNoneElsewhere) {
  EXPECT_THAT(PtxOf("Q4_K"), HasSubstr("fma.rn.f32"));
  EXPECT_THAT(PtxOf("F32"), HasSubstr("fma.rn.f32"));
  EXPECT_THAT(PtxOf("common"), HasSubstr("fma.rn.f32"));
  EXPECT_THAT(PtxOf("buddies"), Not(HasSubstr("fma."))) << "its doubles are all apart";
}

TEST(CudaImages, MultiplyFourCodesAtATime) {
  for (const TensorTypeInfo& info : AllTensorTypes()) {
    if (info.block_elems == 1) continue;
    EXPECT_THAT(PtxOf(info.name), HasSubstr("dp4a.u32.s32")) << info.name;
  }
}

// What the checks above are worth: the same source by other options is found out.
TEST(CudaImages, OfACompilerThatMayContractOrApproximateAreFoundOut) {
  if (std::getenv("TROUPE_NVCC") == nullptr) GTEST_SKIP() << "ctest says where nvcc is";
  EXPECT_THAT(RoundedOtherwise(PtxBy("-fmad=false", "common")), IsEmpty());
  EXPECT_THAT(RoundedOtherwise(PtxBy("-fmad=true", "common")), Not(IsEmpty()));
  EXPECT_THAT(RoundedOtherwise(PtxBy("-fmad=true", "buddies")), Not(IsEmpty()));
  EXPECT_THAT(RoundedOtherwise(PtxBy("-fmad=false -ftz=true", "common")), Not(IsEmpty()));
  EXPECT_THAT(RoundedOtherwise(PtxBy("-fmad=false -prec-div=false", "common")), Not(IsEmpty()));
}

// nvcc writes the version that it knows, and a driver refuses one that it does not.
TEST(CudaImages, AreOfAnOldVersionOfPtxSoThatOldDriversTakeThem) {
  if (kCudaCapability > 75) GTEST_SKIP() << "later cards need a later one";
  for (const CudaImage& image : CudaImages()) {
    EXPECT_THAT(image.ptx, HasSubstr("\n.version 6.4\n.target sm_")) << image.program;
  }
}

// nvcc copies assembly of a source unread, and what is newer than the images' version is refused
// here alone. Drivers assemble by what this is made of, too.
TEST(CudaImages, AreTakenByNvidiasAssembler) {
  if (std::getenv("TROUPE_NVCC") == nullptr) GTEST_SKIP() << "ctest says where nvcc is";
  const TempFolder folder;
  const std::string options = "-cubin -arch=sm_" + std::to_string(kCudaCapability);
  for (const CudaImage& image : CudaImages()) {
    EXPECT_TRUE(Compiles(options, folder.Write("a.ptx", image.ptx), folder.PathOf("a.cubin")))
        << image.program;
  }
  // An instruction of 6.5.
  for (const char* const version : {"6.4", "6.5"}) {
    const std::string ptx = std::string(".version ") + version +
                            "\n.target sm_75\n.address_size 64\n.visible .entry Pack() {\n"
                            ".reg .b32 %r<4>;\ncvt.pack.sat.u16.s32 %r1, %r2, %r3;\nret;\n}\n";
    const std::string path = folder.Write("later.ptx", ptx);
    EXPECT_EQ(Compiles(options, path, folder.PathOf("a.cubin")), version == std::string("6.5"));
  }
}

TEST(RoundedOtherwise, NamesEachLineThatMayRoundOtherwise) {
  EXPECT_THAT(RoundedOtherwise("\tmul.rn.f32 %f1, %f2, %f3;\n\tadd.rn.f64 %fd1, %fd2, %fd3;\n"
                               "\tmul.wide.u32 %rd1, %r1, 4;\n\tadd.s64 %rd1, %rd2, %rd3;\n"
                               "\tmad.lo.s32 %r1, %r2, %r3, %r4;\n\tdiv.rn.f32 %f1, %f2, %f3;\n"),
              IsEmpty());
  for (const char* const line :
       {"mul.f32 %f1, %f2, %f3;", "add.f64 %fd1, %fd2, %fd3;", "sub.f32 %f1, %f2, %f3;",
        "fma.rn.f32 %f1, %f2, %f3, %f4;", "@%p1 fma.rn.f64 %fd1, %fd2, %fd3, %fd4;",
        "mul.rn.ftz.f32 %f1, %f2, %f3;", "div.full.f32 %f1, %f2, %f3;",
        "div.approx.f32 %f1, %f2, %f3;", "mad.f32 %f1, %f2, %f3, %f4;",
        "ex2.approx.f32 %f1, %f2;"}) {
    EXPECT_THAT(RoundedOtherwise(line), testing::ElementsAre(line));
  }
  EXPECT_THAT(RoundedOtherwise("\t// begin inline asm\n\tfma.rn.f32 %f1, %f2, %f3, %f4;\n"
                               "\t// end inline asm\n"),
              IsEmpty());
}

}  // namespace
}  // namespace troupe
