# The few functions that every folder's CMakeLists.txt uses: one library a folder, tests and
# benchmarks beside the sources they belong to.

add_library(troupe_options INTERFACE)
target_include_directories(troupe_options INTERFACE ${CMAKE_SOURCE_DIR}/src ${CMAKE_SOURCE_DIR}/include)
target_compile_options(troupe_options INTERFACE -Wall -Wextra -Wshadow -Wnon-virtual-dtor
  -Woverloaded-virtual -Wcast-align -Wunused
  # Not by default: another compiler's new warning must not stop who only wants to run the program.
  $<$<BOOL:${TROUPE_WERROR}>:-Werror>
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

# What `make test`, `make benches` and `make fuzz` build; the functions below add to them.
if(TROUPE_TESTS)
  add_custom_target(all_tests)
endif()
if(TROUPE_BENCHES)
  add_custom_target(all_benches)
endif()

# troupe_units(out name file...): what to compile in place of a folder's files: units that include at
# most TROUPE_UNIT_FILES of them each, so that the headers they share are read once, and what those
# instantiate is made once. Names in unnamed namespaces must therefore differ within a folder. Units
# are cut anew when a file is added. A unit names its files
# relative to src, and is the same in every clone, so that ccache knows it. TROUPE_UNITS=OFF compiles
# each file by itself, as `make tidy` does: no file may lean on what another includes.
function(troupe_units out name)
  set(files ${ARGN})
  list(LENGTH files count)
  math(EXPR units "(${count} + ${TROUPE_UNIT_FILES} - 1) / ${TROUPE_UNIT_FILES}")
  if(NOT TROUPE_UNITS OR count LESS 2)
    set(${out} ${files} PARENT_SCOPE)
    return()
  endif()
  file(RELATIVE_PATH folder ${CMAKE_SOURCE_DIR}/src ${CMAKE_CURRENT_SOURCE_DIR})
  set(made)
  foreach(unit RANGE 1 ${units})
    math(EXPR first "(${unit} - 1) * ${count} / ${units}")
    math(EXPR length "${unit} * ${count} / ${units} - ${first}")
    list(SUBLIST files ${first} ${length} together)
    list(TRANSFORM together REPLACE "(.+)" "#include \"${folder}/\\1\"\n")
    string(CONCAT text ${together})
    set(source ${CMAKE_CURRENT_BINARY_DIR}/${name}_${unit}.cc)
    file(CONFIGURE OUTPUT ${source} CONTENT "${text}" @ONLY)
    list(APPEND made ${source})
  endforeach()
  set(${out} ${made} PARENT_SCOPE)
endfunction()

# troupe_library(name [ARITHMETIC] [OPTIMISED] [FUZZED] [SRCS ...] [DEPS troupe::...] [EXTERNAL ...]): makes
# troupe_<name> and its alias troupe::<name>. DEPS are the folders it may include, and no others:
# tests/layers_test.py holds every #include to them. EXTERNAL are libraries of others.
# ARITHMETIC: each file is compiled by itself, as these take long and share few templates.
# OPTIMISED: under sanitizers, too, which optimise nothing else: that would be half of what they cost
# to compile, and the tests of few folders take longer than compiling them.
# FUZZED: what reads bytes of strangers. Its branches tell a fuzzer about them, and it is instrumented
# for that in the build of the sanitizers, whose tests it makes much slower.
function(troupe_library name)
  cmake_parse_arguments(ARG "ARITHMETIC;FUZZED;OPTIMISED" "" "SRCS;DEPS;EXTERNAL" ${ARGN})
  set(access PUBLIC)
  if(ARG_SRCS)
    set(sources ${ARG_SRCS})
    if(NOT ARG_ARITHMETIC)
      troupe_units(sources ${name} ${ARG_SRCS})
    endif()
    add_library(troupe_${name} STATIC ${sources})
  else()
    add_library(troupe_${name} INTERFACE)
    set(access INTERFACE)
  endif()
  add_library(troupe::${name} ALIAS troupe_${name})
  target_link_libraries(troupe_${name} ${access} troupe_options ${ARG_DEPS} ${ARG_EXTERNAL})
  if(TROUPE_SANITIZE AND (ARG_ARITHMETIC OR ARG_OPTIMISED))
    target_compile_options(troupe_${name} PRIVATE -O1)
  endif()
  if(TROUPE_FUZZ AND ARG_FUZZED)
    target_compile_options(troupe_${name} PRIVATE -fsanitize=fuzzer-no-link)
  endif()
endfunction()

# troupe_compile_quickly(target): optimises little what is templates to compile and nothing to run, as
# GoogleTest's and CLI11's are: half of what they cost to compile is optimising them.
function(troupe_compile_quickly target)
  if(CMAKE_BUILD_TYPE STREQUAL "Release")
    target_compile_options(${target} PRIVATE -O1)
  endif()
endfunction()

# troupe_tests(name [ARITHMETIC] SRCS a_test.cc ... [OPTIMISED a_test.cc ...]
#              [READS_SOURCE_TREE a_test.cc ...] [HELPERS a_for_test.cc ...] [DEPS troupe::...]
#              [LINKS ...]): one program, <name>_tests, for all tests of a folder; for each of its files an entry in ctest that runs the suites
# of that file. READS_SOURCE_TREE defines TROUPE_SOURCE_DIR; the other files compile to the same bytes
# in every clone, so that ccache need not compile them again. OPTIMISED are those whose own slow models
# take the time. HELPERS have no tests of their own. DEPS are folders that only the tests include,
# LINKS other libraries.
function(troupe_tests name)
  if(NOT TROUPE_TESTS)
    return()
  endif()
  cmake_parse_arguments(ARG "ARITHMETIC" "" "SRCS;OPTIMISED;READS_SOURCE_TREE;HELPERS;DEPS;LINKS" ${ARGN})
  set(program ${name}_tests)
  # Files with options of their own are units of their own.
  set(plain ${ARG_SRCS} ${ARG_HELPERS})
  set(reading ${ARG_READS_SOURCE_TREE})
  list(REMOVE_ITEM reading "" ${ARG_OPTIMISED})
  list(REMOVE_ITEM plain "" ${ARG_OPTIMISED} ${ARG_READS_SOURCE_TREE})
  if(NOT ARG_ARITHMETIC)
    troupe_units(plain ${program} ${plain})
    troupe_units(reading ${program}_reading ${reading})
  endif()
  set(sources ${plain} ${reading} ${ARG_OPTIMISED})
  add_executable(${program} ${sources})
  add_dependencies(all_tests ${program})
  set(library)
  if(TARGET troupe::${name})
    set(library troupe::${name})
  endif()
  target_link_libraries(${program} PRIVATE ${library} ${ARG_DEPS} ${ARG_LINKS} GTest::gmock GTest::gtest_main)
  list(REMOVE_DUPLICATES reading)
  foreach(file IN LISTS reading)
    set_property(SOURCE ${file} APPEND PROPERTY COMPILE_DEFINITIONS TROUPE_SOURCE_DIR="${CMAKE_SOURCE_DIR}")
  endforeach()
  set(seconds 300)
  if(TROUPE_SANITIZE)
    set(seconds 1200)  # what sanitizers slow it down by
    set_property(SOURCE ${ARG_OPTIMISED} APPEND PROPERTY COMPILE_OPTIONS -O1)
  elseif(CMAKE_BUILD_TYPE STREQUAL "Release")
    set(quick ${sources})
    list(REMOVE_ITEM quick "" ${ARG_OPTIMISED})
    # Half of what GoogleTest's templates cost to compile is optimising them.
    set_property(SOURCE ${quick} APPEND PROPERTY COMPILE_OPTIONS -O1)
  endif()
  foreach(file IN LISTS ARG_SRCS)
    set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS ${file})
    # By name: a suite may have its tests in several files, and each runs its own.
    file(READ ${file} text)
    string(REGEX MATCHALL "(^|\n)(TEST|TEST_F|TEST_P|TYPED_TEST)\\([^)]*\\)" heads "${text}")
    set(filter)
    foreach(head IN LISTS heads)
      string(REGEX MATCH "([A-Z_]+)\\(([A-Za-z0-9_]+),[ \n]*([A-Za-z0-9_]+)\\)" head "${head}")
      set(suite ${CMAKE_MATCH_2})
      set(test ${CMAKE_MATCH_3})
      if(CMAKE_MATCH_1 STREQUAL "TEST_P")
        list(APPEND filter "${suite}.${test}/*" "*/${suite}.${test}/*")
      elseif(CMAKE_MATCH_1 STREQUAL "TYPED_TEST")
        list(APPEND filter "${suite}/*.${test}")
      else()
        list(APPEND filter "${suite}.${test}")
      endif()
    endforeach()
    list(JOIN filter ":" filter)
    get_filename_component(entry ${file} NAME_WE)
    get_property(taken GLOBAL PROPERTY TROUPE_TEST_NAMES)
    if(entry IN_LIST taken)
      message(FATAL_ERROR "${entry}: two files of that name, which ctest takes for one test")
    endif()
    set_property(GLOBAL APPEND PROPERTY TROUPE_TEST_NAMES ${entry})
    add_test(NAME ${entry} COMMAND ${program} --gtest_filter=${filter})
    set_tests_properties(${entry} PROPERTIES
      TIMEOUT ${seconds}
      LABELS ${program}  # by which scripts/test.sh runs a folder's
      FAIL_REGULAR_EXPRESSION "Running 0 tests")  # a filter that matches nothing would pass
  endforeach()
endfunction()

# troupe_bench(name [SRCS ...] DEPS ...): name.cc with Google Benchmark's main; built by the target
# all_benches, never run by ctest.
function(troupe_bench name)
  if(NOT TROUPE_BENCHES)
    return()
  endif()
  cmake_parse_arguments(ARG "" "" "SRCS;DEPS" ${ARGN})
  add_executable(${name} EXCLUDE_FROM_ALL ${name}.cc ${ARG_SRCS})
  add_dependencies(all_benches ${name})
  target_link_libraries(${name} PRIVATE ${ARG_DEPS} troupe::testing benchmark::benchmark_main)
endfunction()
