# One libFuzzer target per file tests/fuzz/NAME_fuzz.cpp; inputs to start from lie in tests/fuzz/corpus/NAME.

add_custom_target(fuzzers)
file(GLOB fuzzers CONFIGURE_DEPENDS ${PROJECT_SOURCE_DIR}/tests/fuzz/*_fuzz.cpp)
foreach(source IN LISTS fuzzers)
  get_filename_component(name ${source} NAME_WE)
  string(REGEX REPLACE "_fuzz$" "" subject ${name})
  add_executable(${name} ${source})
  target_link_libraries(${name} PRIVATE foretoken_sim foretoken_models foretoken_base)
  target_link_options(${name} PRIVATE -fsanitize=fuzzer)
  add_dependencies(fuzzers ${name})
  set_target_properties(${name} PROPERTIES RUNTIME_OUTPUT_DIRECTORY ${PROJECT_BINARY_DIR}/fuzz)
  set(found ${PROJECT_BINARY_DIR}/fuzz/corpus/${subject})
  file(MAKE_DIRECTORY ${found})
  set(corpora ${found})
  if(IS_DIRECTORY ${PROJECT_SOURCE_DIR}/tests/fuzz/corpus/${subject})
    list(APPEND corpora ${PROJECT_SOURCE_DIR}/tests/fuzz/corpus/${subject})
  endif()
  add_test(NAME fuzz_${subject} WORKING_DIRECTORY ${PROJECT_BINARY_DIR}/fuzz
           COMMAND ${name} -max_total_time=${FORETOKEN_FUZZ_SECONDS} -rss_limit_mb=2048 -timeout=10 -max_len=65536
                   -print_final_stats=1 ${corpora})
  set_tests_properties(fuzz_${subject} PROPERTIES LABELS fuzz)
endforeach()
