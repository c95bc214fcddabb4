# libtroupe.a and libtroupe.so: the objects of src/api and of every folder it stands on, in one file
# each, and what `cmake --install` puts beside them so that others find them. What is exported from
# the shared one is named in src/api/libtroupe.map.
include(GNUInstallDirs)
include(CMakePackageConfigHelpers)

# troupe_closure(out name): the folders' libraries that troupe_<name> is made of, itself among them.
function(troupe_closure out name)
  set(found)
  set(left troupe_${name})
  while(left)
    list(POP_FRONT left target)
    if(target IN_LIST found)
      continue()
    endif()
    list(APPEND found ${target})
    get_target_property(links ${target} INTERFACE_LINK_LIBRARIES)
    foreach(link IN LISTS links)
      if(link MATCHES "^troupe::(.*)$")
        list(APPEND left troupe_${CMAKE_MATCH_1})
      endif()
    endforeach()
  endwhile()
  set(${out} ${found} PARENT_SCOPE)
endfunction()

troupe_closure(folders api)
set(objects)
foreach(folder IN LISTS folders)
  get_target_property(type ${folder} TYPE)
  if(NOT type STREQUAL "INTERFACE_LIBRARY")
    list(APPEND objects $<TARGET_OBJECTS:${folder}>)
  endif()
endforeach()

# Libraries of others, as a linker and pkg-config name them.
set(TROUPE_EXTERNAL_LIBRARIES fmt hwy pcre2-8 uring xxhash zstd pthread)

foreach(kind STATIC SHARED)
  string(TOLOWER ${kind} suffix)
  add_library(libtroupe_${suffix} ${kind} ${objects})
  set_target_properties(libtroupe_${suffix} PROPERTIES OUTPUT_NAME troupe LINKER_LANGUAGE CXX)
  target_include_directories(libtroupe_${suffix} INTERFACE $<INSTALL_INTERFACE:${CMAKE_INSTALL_INCLUDEDIR}>)
  target_compile_features(libtroupe_${suffix} INTERFACE cxx_std_20)
endforeach()

target_link_libraries(libtroupe_static INTERFACE ${TROUPE_EXTERNAL_LIBRARIES})
set_target_properties(libtroupe_static PROPERTIES EXPORT_NAME troupe_static)

set(exports ${CMAKE_SOURCE_DIR}/src/api/libtroupe.map)
target_link_libraries(libtroupe_shared PRIVATE troupe_options ${TROUPE_EXTERNAL_LIBRARIES})
target_link_options(libtroupe_shared PRIVATE -Wl,--version-script=${exports} -Wl,--gc-sections)
if(NOT TROUPE_SANITIZE)  # a sanitizer's runtime comes with the program
  target_link_options(libtroupe_shared PRIVATE -Wl,--no-undefined)
endif()
# Until 1.0 a minor version may change the interface.
set_target_properties(libtroupe_shared PROPERTIES
  EXPORT_NAME troupe
  LINK_DEPENDS ${exports}
  VERSION ${PROJECT_VERSION}
  SOVERSION ${PROJECT_VERSION_MAJOR}.${PROJECT_VERSION_MINOR})

install(TARGETS libtroupe_static libtroupe_shared EXPORT TroupeTargets)
install(DIRECTORY ${CMAKE_SOURCE_DIR}/include/troupe TYPE INCLUDE FILES_MATCHING PATTERN "*.h")

# find_package(Troupe) gives Troupe::troupe, the shared library, and Troupe::troupe_static.
set(package ${CMAKE_INSTALL_LIBDIR}/cmake/Troupe)
install(EXPORT TroupeTargets NAMESPACE Troupe:: FILE TroupeConfig.cmake DESTINATION ${package})
write_basic_package_version_file(TroupeConfigVersion.cmake COMPATIBILITY SameMinorVersion)
install(FILES ${CMAKE_CURRENT_BINARY_DIR}/TroupeConfigVersion.cmake DESTINATION ${package})

# pkg-config --cflags --libs troupe
list(TRANSFORM TROUPE_EXTERNAL_LIBRARIES PREPEND -l OUTPUT_VARIABLE private)
list(JOIN private " " TROUPE_LIBS_PRIVATE)
set(pkgconfig ${CMAKE_INSTALL_LIBDIR}/pkgconfig)
file(RELATIVE_PATH TROUPE_PC_TO_PREFIX /${pkgconfig} /)  # "../.."
configure_file(${CMAKE_SOURCE_DIR}/cmake/troupe.pc.in troupe.pc @ONLY)
install(FILES ${CMAKE_CURRENT_BINARY_DIR}/troupe.pc DESTINATION ${pkgconfig})
