# `make deb`: the program, its manual page and completions, a unit for systemd, and what Prometheus and
# Grafana read, as one package. What it depends on is found by dpkg-shlibdeps.
install(FILES ${CMAKE_SOURCE_DIR}/packaging/troupe@.service DESTINATION lib/systemd/system
  COMPONENT package EXCLUDE_FROM_ALL)
install(FILES ${CMAKE_SOURCE_DIR}/packaging/alerts.yml ${CMAKE_SOURCE_DIR}/packaging/grafana.json
  DESTINATION share/troupe COMPONENT package EXCLUDE_FROM_ALL)

set(CPACK_PACKAGE_CONTACT "The Troupe developers <troupe@localhost>")
set(CPACK_PACKAGE_DESCRIPTION_SUMMARY "runs Mixture-of-Experts language models larger than memory")
set(CPACK_PACKAGE_DESCRIPTION "Troupe reads GGUF models, keeps the whole process within a memory budget, reads experts from
the disk when they are needed, and gives the same bytes whatever the budget. It serves a model
to clients of OpenAI's and Anthropic's APIs.")
set(CPACK_PACKAGING_INSTALL_PREFIX /usr)
set(CPACK_COMPONENTS_ALL program package)
set(CPACK_COMPONENTS_GROUPING ALL_COMPONENTS_IN_ONE)
set(CPACK_DEB_COMPONENT_INSTALL ON)
set(CPACK_DEBIAN_FILE_NAME DEB-DEFAULT)
set(CPACK_DEBIAN_PACKAGE_SECTION science)
set(CPACK_DEBIAN_PACKAGE_SHLIBDEPS ON)
set(CPACK_DEBIAN_PACKAGE_DEPENDS "libcurl4 (>= 7.85)")  # `troupe pull` loads it when it is needed
set(CPACK_DEBIAN_PACKAGE_RECOMMENDS ca-certificates)  # for `troupe pull`
set(CPACK_DEBIAN_PACKAGE_SUGGESTS ocl-icd-libopencl1)  # for cards, which `troupe probe` measures
set(CPACK_STRIP_FILES ON)
include(CPack)
