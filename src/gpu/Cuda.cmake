# The kernels as PTX, and what is compiled with them in place of cuda_none.cc. Needs nvcc, and nothing
# of CUDA where the program runs but the driver of a card. Sets TROUPE_CUDA_PROGRAMS_FOLDER, empty where there is no nvcc.
option(TROUPE_CUDA "Have NVIDIA's cards through CUDA, where nvcc is" ON)
set(TROUPE_CUDA_CAPABILITY 75 CACHE STRING "Least compute capability of a card: later ones run the same kernels")
find_program(TROUPE_NVCC NAMES nvcc HINTS /usr/local/cuda/bin DOC "NVIDIA's compiler")
mark_as_advanced(TROUPE_NVCC)

# All that exact_kernels.cl and buddies.cl are compiled to; cuda_ptx_test holds the list to the types there are.
set(cuda_programs common buddies F32 F16 BF16 Q4_0 Q4_1 Q5_0 Q5_1 Q8_0 Q2_K Q3_K Q4_K Q5_K Q6_K MXFP4 NVFP4
  IQ1_S IQ1_M IQ2_XXS IQ2_XS IQ2_S IQ3_XXS IQ3_S IQ4_NL IQ4_XS)
# Rounded as they are written: nothing contracted, nothing approximate, subnormal numbers kept.
set(cuda_options -ptx -std=c++17 -arch=compute_${TROUPE_CUDA_CAPABILITY} -O3
  -fmad=false -prec-div=true -prec-sqrt=true -ftz=false --diag-suppress 177)

set(TROUPE_CUDA_PROGRAMS_FOLDER "")
if(TROUPE_CUDA AND TROUPE_NVCC AND NOT CMAKE_CROSSCOMPILING)
  get_filename_component(nvcc_file "${TROUPE_NVCC}" REALPATH)  # another one may come to lie under its name
  get_filename_component(nvcc_folder "${nvcc_file}" DIRECTORY)
  find_path(TROUPE_CUDA_HEADERS NAMES cuda.h HINTS ${nvcc_folder}/../include /usr/local/cuda/include
    DOC "Where cuda.h lies: it comes with nvcc")
  mark_as_advanced(TROUPE_CUDA_HEADERS)
  # An nvcc may be there that does not know this machine's compiler. It is tried again until that has changed.
  set(with "${nvcc_file} ${cuda_options}")
  if(NOT with STREQUAL "${TROUPE_NVCC_TRIED}")
    set(tried ${CMAKE_CURRENT_BINARY_DIR}/nvcc_tried)
    file(WRITE ${tried}.cu "extern \"C\" __global__ void Nothing() {}\n")
    execute_process(COMMAND ${TROUPE_NVCC} ${cuda_options} ${tried}.cu -o ${tried}.ptx
      RESULT_VARIABLE failed OUTPUT_QUIET ERROR_QUIET)
    if(failed STREQUAL "0")
      set(TROUPE_NVCC_TRIED "${with}" CACHE INTERNAL "")
    endif()
  endif()
  if(with STREQUAL "${TROUPE_NVCC_TRIED}" AND TROUPE_CUDA_HEADERS)
    set(TROUPE_CUDA_PROGRAMS_FOLDER ${CMAKE_CURRENT_BINARY_DIR}/programs)
  endif()
endif()
if(NOT TROUPE_CUDA_PROGRAMS_FOLDER)
  message(STATUS "src/gpu: without CUDA (no nvcc that compiles, or TROUPE_CUDA=OFF)")
endif()

# troupe_cuda_images(target): has nvcc compile the kernels, and adds them to the target as C++.
function(troupe_cuda_images target)
  set(folder ${TROUPE_CUDA_PROGRAMS_FOLDER})
  file(MAKE_DIRECTORY ${folder})
  add_executable(kernel_programs kernel_programs_main.cc kernel_source.cc ${CMAKE_CURRENT_BINARY_DIR}/kernel_text.cc)
  target_link_libraries(kernel_programs PRIVATE troupe::base troupe::quant)
  set(texts)
  set(images)
  foreach(program IN LISTS cuda_programs)
    list(APPEND texts ${folder}/${program}.cu ${folder}/${program}_cpp.cc)
    add_custom_command(OUTPUT ${folder}/${program}.ptx
      COMMAND ${TROUPE_NVCC} ${cuda_options} ${program}.cu -o ${program}.ptx
      DEPENDS ${folder}/${program}.cu ${nvcc_file} WORKING_DIRECTORY ${folder} COMMENT "nvcc: ${program}" VERBATIM)
    list(APPEND images ${folder}/${program}.ptx)
  endforeach()
  add_custom_command(OUTPUT ${texts} COMMAND kernel_programs ${folder} DEPENDS kernel_programs
    COMMENT "The kernels' programs for nvcc" VERBATIM)
  set(embed ${CMAKE_CURRENT_SOURCE_DIR}/embed_ptx.cmake)
  list(JOIN cuda_programs "," names)
  add_custom_command(OUTPUT ${folder}/cuda_images.cc
    COMMAND ${CMAKE_COMMAND} -DFOLDER=${folder} -DPROGRAMS=${names} -DCAPABILITY=${TROUPE_CUDA_CAPABILITY} -P ${embed}
    DEPENDS ${images} ${embed} COMMENT "The kernels' images as C++" VERBATIM)
  # For those who are in other folders: tests/fake_cuda.
  add_custom_target(cuda_images DEPENDS ${texts} ${folder}/cuda_images.cc)
  target_sources(${target} PRIVATE ${folder}/cuda_images.cc)
  target_include_directories(${target} SYSTEM PRIVATE ${TROUPE_CUDA_HEADERS})
  set_property(GLOBAL PROPERTY TROUPE_CUDA_PROGRAMS ${cuda_programs})
  set_property(GLOBAL PROPERTY TROUPE_CUDA_PROGRAMS_FOLDER ${folder})
endfunction()
