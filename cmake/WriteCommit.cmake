# Run at every build (cmake -P): writes which commit the tree is at into OUT, and touches it only when
# that is another than before, so that nothing is compiled or linked again without need. A tree
# without git, as one from an archive, is 'unknown'. COMMIT, if it is not empty, is taken as it is.
if(NOT COMMIT)
  set(COMMIT unknown)
  find_program(GIT git)
  if(GIT)
    execute_process(COMMAND "${GIT}" -C "${SOURCE}" rev-parse --show-toplevel
      OUTPUT_VARIABLE top OUTPUT_STRIP_TRAILING_WHITESPACE ERROR_QUIET)
    file(REAL_PATH "${SOURCE}" source)
    if(top STREQUAL source)  # not a repository that only happens to lie above this tree
      execute_process(COMMAND "${GIT}" -C "${SOURCE}" describe --always --abbrev=12 --exclude=* --dirty=+changes
        OUTPUT_VARIABLE said RESULT_VARIABLE failed OUTPUT_STRIP_TRAILING_WHITESPACE ERROR_QUIET)
      if(failed EQUAL 0 AND said)
        set(COMMIT "${said}")
      endif()
    endif()
  endif()
endif()
configure_file("${CMAKE_CURRENT_LIST_DIR}/commit.cc.in" "${OUT}" @ONLY)
