# The simulator as a library: find_package(foretoken), then link foretoken::sim.

include(CMakePackageConfigHelpers)
install(TARGETS foretoken_base foretoken_core foretoken_models foretoken_sim EXPORT foretokenTargets
        ARCHIVE DESTINATION ${CMAKE_INSTALL_LIBDIR})
if(TARGET foretoken)
  install(TARGETS foretoken RUNTIME DESTINATION ${CMAKE_INSTALL_BINDIR})
endif()
foreach(folder sim models)
  install(DIRECTORY ${folder} DESTINATION ${CMAKE_INSTALL_INCLUDEDIR}/foretoken FILES_MATCHING PATTERN "*.hpp"
          PATTERN "data" EXCLUDE)
endforeach()
install(EXPORT foretokenTargets NAMESPACE foretoken:: DESTINATION ${CMAKE_INSTALL_LIBDIR}/cmake/foretoken)
configure_package_config_file(cmake/foretokenConfig.cmake.in ${PROJECT_BINARY_DIR}/foretokenConfig.cmake
                              INSTALL_DESTINATION ${CMAKE_INSTALL_LIBDIR}/cmake/foretoken)
write_basic_package_version_file(${PROJECT_BINARY_DIR}/foretokenConfigVersion.cmake COMPATIBILITY SameMinorVersion)
install(FILES ${PROJECT_BINARY_DIR}/foretokenConfig.cmake ${PROJECT_BINARY_DIR}/foretokenConfigVersion.cmake
        DESTINATION ${CMAKE_INSTALL_LIBDIR}/cmake/foretoken)
install(FILES LICENSE THIRD_PARTY.md DESTINATION ${CMAKE_INSTALL_DOCDIR})
