// Writes the programs of kernel_source.h for compilers that run when Troupe is built: NAME.cu for
// nvcc (names_cuda.cuh), and NAME_cpp.cc for the processor, as the driver of tests has them
// (tests/fake_cuda). Cuda.cmake calls it.
// usage: kernel_programs FOLDER
#include <fmt/format.h>

#include <cstdio>
#include <fstream>
#include <sstream>

#include "gpu/kernel_source.h"

namespace troupe {
namespace {

// Only what is new, so that nothing is compiled again without need.
bool WriteFile(const std::string& path, const std::string& text) {
  std::ostringstream there;
  there << std::ifstream(path).rdbuf();
  if (there.str() == text) return true;
  return static_cast<bool>(std::ofstream(path) << text << std::flush);
}

std::string AsCpp(const GpuProgram& program) {
  std::string kernels;
  for (const std::string_view kernel : program.kernels) {
    kernels += fmt::format("{{\"{0}\", KernelOf<{0}>()}}, ", kernel);
  }
  return fmt::format(
      "// Made by src/gpu/kernel_programs_main.cc.\n#include \"fake_cuda/names_cpp.h\"\n\n"
      "namespace troupe {{\nnamespace {{\n\n{}\nconst FakeProgram here(\"{}\", "
      "{{{}}});\n\n}}\n}}\n",
      program.source.text, program.source.name, kernels);
}

}  // namespace
}  // namespace troupe

int main(int argc, char** argv) {
  if (argc != 2) {
    std::fputs("usage: kernel_programs FOLDER\n", stderr);
    return 2;
  }
  bool written = true;
  const auto path = [&](const troupe::GpuProgram& program, const char* ending) {
    return fmt::format("{}/{}{}", argv[1], program.source.name, ending);
  };
  for (const auto& program : troupe::AllPrograms(troupe::kCudaNamesText)) {
    written = written && troupe::WriteFile(path(program, ".cu"), program.source.text);
  }
  for (const auto& program : troupe::AllPrograms("")) {
    written = written && troupe::WriteFile(path(program, "_cpp.cc"), troupe::AsCpp(program));
  }
  if (!written) std::fprintf(stderr, "kernel_programs: cannot write in %s\n", argv[1]);
  return written ? 0 : 1;
}
