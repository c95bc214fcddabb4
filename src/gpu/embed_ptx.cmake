# Makes C++ of the kernels' PTX: cmake -DFOLDER=… -DPROGRAMS=a,b -DCAPABILITY=75 -P embed_ptx.cmake
# nvcc writes its own version of PTX, which drivers older than itself refuse. What the kernels have is in 6.4, where
# cards up to 7.5 are known, too; cuda_ptx_test assembles it as such.
set(out ${FOLDER}/cuda_images.cc)
string(REPLACE "," ";" programs "${PROGRAMS}")
file(WRITE ${out}.new "// Made by src/gpu/embed_ptx.cmake.\n#include \"gpu/cuda_images.h\"\n\nnamespace troupe {\nnamespace {\n\nusing namespace std::string_view_literals;\n\nconst CudaImage kImages[] = {\n")
foreach(program IN LISTS programs)
  file(READ ${FOLDER}/${program}.ptx ptx)
  if(NOT CAPABILITY GREATER 75)
    string(REGEX REPLACE "\n\\.version [0-9]+\\.[0-9]+\n" "\n.version 6.4\n" ptx "${ptx}")
  endif()
  file(APPEND ${out}.new "{\"${program}\"sv, R\"ptx(")
  file(APPEND ${out}.new "${ptx}")
  file(APPEND ${out}.new ")ptx\"sv},\n")
endforeach()
file(APPEND ${out}.new "};\n\n}  // namespace\n\nstd::span<const CudaImage> CudaImages() { return kImages; }\nconst int kCudaCapability = ${CAPABILITY};\n\n}  // namespace troupe\n")
file(RENAME ${out}.new ${out})
