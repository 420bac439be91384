# Two generated sources: what this build is, and the files that ship inside the program.

set(generated ${PROJECT_BINARY_DIR}/generated)
set(FORETOKEN_GENERATED_SOURCES ${generated}/version.cpp ${generated}/resources.cpp)

# The commit is stamped when HEAD moves, by one small file; nothing else is rebuilt.
find_package(Git QUIET)
set(head_log "")
if(Git_FOUND)
  execute_process(COMMAND ${GIT_EXECUTABLE} rev-parse --path-format=absolute --git-path logs/HEAD
                  WORKING_DIRECTORY ${PROJECT_SOURCE_DIR} OUTPUT_VARIABLE head_log
                  OUTPUT_STRIP_TRAILING_WHITESPACE ERROR_QUIET)
endif()
if(NOT EXISTS "${head_log}")
  set(head_log "")
endif()
add_custom_command(
  OUTPUT ${generated}/version.cpp
  COMMAND ${CMAKE_COMMAND} -DTEMPLATE=${PROJECT_SOURCE_DIR}/cmake/version.cpp.in -DTARGET=${generated}/version.cpp
          -DSOURCE=${PROJECT_SOURCE_DIR} -DGIT=${GIT_EXECUTABLE} -DVERSION=${PROJECT_VERSION}
          "-DCOMPILER=${CMAKE_CXX_COMPILER_ID} ${CMAKE_CXX_COMPILER_VERSION}" -DBUILD_TYPE=${CMAKE_BUILD_TYPE}
          -DSANITIZE=${FORETOKEN_SANITIZE} -DAUDIT=${FORETOKEN_AUDIT} -DCUDA=${FORETOKEN_HAS_CUDA}
          -P ${PROJECT_SOURCE_DIR}/cmake/stamp_version.cmake
  DEPENDS ${PROJECT_SOURCE_DIR}/cmake/version.cpp.in ${PROJECT_SOURCE_DIR}/cmake/stamp_version.cmake ${head_log}
          ${PROJECT_SOURCE_DIR}/CMakeLists.txt
  COMMENT "Stamping the version" VERBATIM)

# Each shipped file becomes bytes between two symbols: the assembler reads it, so megabytes cost no compile time.
file(GLOB_RECURSE shipped CONFIGURE_DEPENDS RELATIVE ${PROJECT_SOURCE_DIR} ${PROJECT_SOURCE_DIR}/models/data/*
     ${PROJECT_SOURCE_DIR}/scenarios/* ${PROJECT_SOURCE_DIR}/plots/assets/*)
list(SORT shipped)
set(bytes "")
set(table "")
set(symbols "")
set(index 0)
set(shipped_paths "")
foreach(path IN LISTS shipped)
  string(APPEND bytes "resource_${index}_begin: .incbin \\\"${PROJECT_SOURCE_DIR}/${path}\\\"\\n"
         "resource_${index}_end: .byte 0\\n")
  string(APPEND symbols "extern const char begin_${index}[] asm(\"resource_${index}_begin\");\n"
         "extern const char end_${index}[] asm(\"resource_${index}_end\");\n")
  string(APPEND table "    {\"${path}\", begin_${index}, end_${index}},\n")
  list(APPEND shipped_paths ${PROJECT_SOURCE_DIR}/${path})
  math(EXPR index "${index} + 1")
endforeach()
configure_file(${PROJECT_SOURCE_DIR}/cmake/resources.cpp.in ${generated}/resources.cpp @ONLY)
set_source_files_properties(${generated}/resources.cpp PROPERTIES OBJECT_DEPENDS "${shipped_paths}")
