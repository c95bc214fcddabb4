# The few functions that every folder's CMakeLists.txt uses: one library a folder, tests and
# benchmarks beside the sources they belong to.

add_library(troupe_options INTERFACE)
target_include_directories(troupe_options INTERFACE ${CMAKE_SOURCE_DIR}/src ${CMAKE_SOURCE_DIR}/include)
target_compile_options(troupe_options INTERFACE -Wall -Wextra -Wshadow -Wnon-virtual-dtor
  -Woverloaded-virtual -Wcast-align -Wunused -Werror
  # Designated initialisers leave the rest to the struct's defaults: that is what they are for.
  -Wno-missing-field-initializers)
# Results must not depend on what the compiler may fuse: the kernels say MulAdd where they mean it.
target_compile_options(troupe_options INTERFACE -ffp-contract=off)
if(CMAKE_CXX_COMPILER_ID STREQUAL "Clang")
  target_compile_options(troupe_options INTERFACE -Wthread-safety)
endif()
if(TROUPE_SANITIZE)
  target_compile_options(troupe_options INTERFACE -fsanitize=${TROUPE_SANITIZE}
    -fno-sanitize-recover=all -fno-omit-frame-pointer)
  target_link_options(troupe_options INTERFACE -fsanitize=${TROUPE_SANITIZE})
endif()
if(TROUPE_FUZZ)
  target_compile_options(troupe_options INTERFACE -fsanitize=fuzzer-no-link)
endif()

# troupe_library(name SRCS ... DEPS ...): makes troupe_<name> and its alias troupe::<name>.
function(troupe_library name)
  cmake_parse_arguments(ARG "" "" "SRCS;DEPS" ${ARGN})
  add_library(troupe_${name} STATIC ${ARG_SRCS})
  add_library(troupe::${name} ALIAS troupe_${name})
  target_link_libraries(troupe_${name} PUBLIC troupe_options ${ARG_DEPS})
endfunction()

# troupe_compile_quickly(target): optimises little what is templates to compile and nothing to run, as
# GoogleTest's and CLI11's are: half of what they cost to compile is optimising them.
function(troupe_compile_quickly target)
  if(TROUPE_SANITIZE)
    target_compile_options(${target} PRIVATE -O0)
  elseif(CMAKE_BUILD_TYPE STREQUAL "Release")
    target_compile_options(${target} PRIVATE -O1)
  endif()
endfunction()

# troupe_test(name [READS_SOURCE_TREE] [OPTIMISED] [SRCS ...] DEPS ...): name.cc and GoogleTest's main,
# run by ctest.
# With READS_SOURCE_TREE it knows TROUPE_SOURCE_DIR; the others compile to the same bytes in every clone,
# so that ccache need not compile them again. OPTIMISED is one whose own slow models take the time.
function(troupe_test name)
  if(NOT TROUPE_TESTS)
    return()
  endif()
  cmake_parse_arguments(ARG "READS_SOURCE_TREE;OPTIMISED" "TIMEOUT" "SRCS;DEPS" ${ARGN})
  add_executable(${name} ${name}.cc ${ARG_SRCS})
  target_link_libraries(${name} PRIVATE ${ARG_DEPS} GTest::gmock GTest::gtest_main)
  if(NOT ARG_OPTIMISED)
    troupe_compile_quickly(${name})
  endif()
  if(ARG_READS_SOURCE_TREE)
    target_compile_definitions(${name} PRIVATE TROUPE_SOURCE_DIR="${CMAKE_SOURCE_DIR}")
  endif()
  if(NOT ARG_TIMEOUT)
    set(ARG_TIMEOUT 300)
  endif()
  if(TROUPE_SANITIZE)
    math(EXPR ARG_TIMEOUT "4 * ${ARG_TIMEOUT}")  # what sanitizers slow it down by
  endif()
  add_test(NAME ${name} COMMAND ${name})
  set_tests_properties(${name} PROPERTIES TIMEOUT ${ARG_TIMEOUT})
endfunction()

# troupe_bench(name [SRCS ...] DEPS ...): name.cc with Google Benchmark's main; built, never run by ctest.
function(troupe_bench name)
  if(NOT TROUPE_BENCHES)
    return()
  endif()
  cmake_parse_arguments(ARG "" "" "SRCS;DEPS" ${ARGN})
  add_executable(${name} ${name}.cc ${ARG_SRCS})
  target_link_libraries(${name} PRIVATE ${ARG_DEPS} benchmark::benchmark_main)
endfunction()
