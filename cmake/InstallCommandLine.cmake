# What `cmake --install` puts into place for people at a terminal: the program, and what belongs to
# it. Libraries and headers are Libtroupe.cmake's.
install(TARGETS troupe)
