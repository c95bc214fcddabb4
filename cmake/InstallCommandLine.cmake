# What `cmake --install` puts into place for people at a terminal: the program, and what belongs to
# it. Libraries and headers are Libtroupe.cmake's.
install(TARGETS troupe troupe-node RUNTIME COMPONENT program)

# The manual page and the completions are printed by the program itself, so that they cannot differ
# from what it takes.
install(CODE [[
  set(root "$ENV{DESTDIR}${CMAKE_INSTALL_PREFIX}")
  set(share "${root}/share")
  foreach(page "man:man/man1/troupe.1" "completion bash:bash-completion/completions/troupe"
               "completion zsh:zsh/site-functions/_troupe" "completion fish:fish/vendor_completions.d/troupe.fish")
    string(REPLACE ":" ";" page "${page}")
    list(GET page 0 words)
    list(GET page 1 file)
    separate_arguments(words)
    cmake_path(GET file PARENT_PATH folder)
    file(MAKE_DIRECTORY "${share}/${folder}")
    message(STATUS "Installing: ${share}/${file}")
    execute_process(COMMAND "${root}/bin/troupe" ${words} OUTPUT_FILE "${share}/${file}" COMMAND_ERROR_IS_FATAL ANY)
  endforeach()
]] COMPONENT program)
