# One executable per folder under tests/, one ctest entry per executable and tag group: starting a process per test case
# is slow under sanitizers.

find_package(Catch2 REQUIRED)
add_library(foretoken_test_main OBJECT tests/main.cpp)
target_link_libraries(foretoken_test_main PUBLIC Catch2::Catch2)
target_include_directories(foretoken_test_main PUBLIC ${PROJECT_SOURCE_DIR})
# Catch itself is not under test, and takes minutes to build under sanitizers.
target_compile_options(foretoken_test_main PRIVATE -O0 -fno-sanitize=all)

# What tests of several folders share.
file(GLOB support CONFIGURE_DEPENDS ${PROJECT_SOURCE_DIR}/tests/support/*.cpp)
if(support)
  add_library(foretoken_test_support STATIC ${support})
  target_link_libraries(foretoken_test_support PUBLIC foretoken_sim)
endif()

# What a folder's tests link; a folder not named here links everything.
set(links_base base)
set(links_core core base)
set(links_fleet core base)
set(links_models models)
set(links_workload sim)
set(links_metrics sim)
set(links_scenario sim)
set(links_property sim)
set(links_theory sim)
set(links_kernels kernels)
set(links_cuda kernels_cuda_emulated kernels)
set(links_backend backend)
set(links_tidy base)
set(links_install base)
# Catch2 3 takes a group without tests for a failure, 2 does not know the option that says otherwise.
set(empty_is_fine "")
if(Catch2_VERSION VERSION_GREATER_EQUAL 3)
  set(empty_is_fine --allow-running-no-tests)
endif()
set(tag_groups property theory golden live gpu)

function(foretoken_add_group FOLDER GROUP SPEC LABELS)
  set(name ${FOLDER}_${GROUP})
  add_test(NAME ${name} COMMAND foretoken_test_${FOLDER} ${SPEC} ${empty_is_fine} WORKING_DIRECTORY ${PROJECT_SOURCE_DIR})
  set_tests_properties(${name} PROPERTIES LABELS "${LABELS}" TIMEOUT 300 SKIP_RETURN_CODE 77)
  if(GROUP STREQUAL "live" OR FOLDER STREQUAL "install")
    set_tests_properties(${name} PROPERTIES RUN_SERIAL TRUE)
  endif()
endfunction()

function(foretoken_add_tests FOLDER)
  file(GLOB sources CONFIGURE_DEPENDS ${PROJECT_SOURCE_DIR}/tests/${FOLDER}/*_test.cpp)
  if(NOT sources)
    return()
  endif()
  file(GLOB helpers CONFIGURE_DEPENDS ${PROJECT_SOURCE_DIR}/tests/${FOLDER}/*.cpp)
  add_executable(foretoken_test_${FOLDER} ${helpers})
  set(links ${links_${FOLDER}})
  if(NOT links)
    set(links cli_lib)
  endif()
  # These run the program itself, or install everything.
  if(FOLDER MATCHES "^(cli|demo|docs|install)$" AND TARGET foretoken)
    add_dependencies(foretoken_test_${FOLDER} foretoken foretoken_sim)
  endif()
  if(FOLDER MATCHES "^(backend|cli|docs)$")
    add_dependencies(foretoken_test_${FOLDER} foretoken_cuda_emulated)
  endif()
  list(TRANSFORM links PREPEND foretoken_)
  if(TARGET foretoken_test_support AND FOLDER MATCHES "^(core|fleet|property|theory|scenario|metrics)$")
    list(PREPEND links foretoken_test_support)
  endif()
  target_link_libraries(foretoken_test_${FOLDER} PRIVATE foretoken_test_main ${links} ZLIB::ZLIB)
  target_compile_definitions(foretoken_test_${FOLDER} PRIVATE FORETOKEN_SOURCE_DIR="${PROJECT_SOURCE_DIR}"
    FORETOKEN_BUILD_DIR="${PROJECT_BINARY_DIR}" FORETOKEN_PROGRAM="${PROJECT_BINARY_DIR}/foretoken"
    FORETOKEN_CMAKE="${CMAKE_COMMAND}")
  # What tests cost is mostly their build: they share units, and only what they call is optimised in full.
  target_compile_options(foretoken_test_${FOLDER} PRIVATE -O1)
  set_target_properties(foretoken_test_${FOLDER} PROPERTIES RUNTIME_OUTPUT_DIRECTORY ${PROJECT_BINARY_DIR}/tests
    UNITY_BUILD ON)

  # Only groups that some test belongs to become entries, so the sources' tags are read at configure time.
  set(found "")
  set(others "")
  foreach(group IN LISTS tag_groups)
    string(APPEND others "~[${group}]")
    foreach(source IN LISTS sources)
      file(STRINGS ${source} lines REGEX "\\[${group}\\]" LIMIT_COUNT 1)
      if(lines)
        list(APPEND found ${group})
        break()
      endif()
    endforeach()
  endforeach()
  set_property(DIRECTORY ${PROJECT_SOURCE_DIR} APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS ${sources})
  set(default_label unit)
  if(FOLDER MATCHES "^(cli|tidy|install)$")
    set(default_label ${FOLDER})
  endif()
  foretoken_add_group(${FOLDER} ${default_label} "${others}" "${default_label};${FOLDER}")
  foreach(group IN LISTS found)
    set(spec "[${group}]")
    if(NOT group MATCHES "^(live|gpu)$")
      string(APPEND spec "~[live]~[gpu]")
    endif()
    foretoken_add_group(${FOLDER} ${group} "${spec}" "${group};${FOLDER}")
  endforeach()
endfunction()

file(GLOB folders CONFIGURE_DEPENDS RELATIVE ${PROJECT_SOURCE_DIR}/tests ${PROJECT_SOURCE_DIR}/tests/*)
foreach(folder IN LISTS folders)
  if(IS_DIRECTORY ${PROJECT_SOURCE_DIR}/tests/${folder} AND NOT folder MATCHES "^(fuzz|support)$")
    foretoken_add_tests(${folder})
  endif()
endforeach()

# It redefines what others include.
set_source_files_properties(${PROJECT_SOURCE_DIR}/tests/cuda/unsynchronised_test.cpp
                            PROPERTIES SKIP_UNITY_BUILD_INCLUSION ON)
# The kernels' tests again, where every access to shared memory is seen.
if(TARGET foretoken_kernels_cuda_raced)
  file(GLOB sources CONFIGURE_DEPENDS ${PROJECT_SOURCE_DIR}/tests/cuda/*.cpp)
  add_executable(foretoken_test_cuda_races ${sources})
  target_link_libraries(foretoken_test_cuda_races PRIVATE foretoken_test_main foretoken_kernels foretoken_kernels_cuda_raced)
  target_compile_definitions(foretoken_test_cuda_races PRIVATE FORETOKEN_SOURCE_DIR="${PROJECT_SOURCE_DIR}")
  target_compile_options(foretoken_test_cuda_races PRIVATE -O1)
  set_target_properties(foretoken_test_cuda_races PROPERTIES RUNTIME_OUTPUT_DIRECTORY ${PROJECT_BINARY_DIR}/tests
    UNITY_BUILD ON)
  add_test(NAME cuda_races COMMAND foretoken_test_cuda_races "~[gpu]" WORKING_DIRECTORY ${PROJECT_SOURCE_DIR})
  set_tests_properties(cuda_races PROPERTIES LABELS "unit;cuda" TIMEOUT 300)
endif()

# What ptxas says of the kernels; a kernel that spills must be found.
set(registers_nvcc nvcc)
if(FORETOKEN_HAS_CUDA)
  set(registers_nvcc ${CMAKE_CUDA_COMPILER})
  add_test(NAME cuda_registers_finds_spills COMMAND ${PROJECT_SOURCE_DIR}/tests/cuda/registers ${registers_nvcc}
           ${PROJECT_BINARY_DIR}/registers/spilling tests/cuda/spilling.cu)
  set_tests_properties(cuda_registers_finds_spills PROPERTIES LABELS cuda
                       PASS_REGULAR_EXPRESSION "registers: a kernel spills")
endif()
add_test(NAME cuda_registers COMMAND ${PROJECT_SOURCE_DIR}/tests/cuda/registers ${registers_nvcc}
         ${PROJECT_BINARY_DIR}/registers)
set_tests_properties(cuda_registers PROPERTIES LABELS cuda SKIP_RETURN_CODE 77 TIMEOUT 600)

# The fiber switch of the other processor at least assembles.
find_program(CLANG_WITH_ALL_TARGETS NAMES clang++-14 clang++-19 clang++)
if(CLANG_WITH_ALL_TARGETS)
  add_test(NAME cuda_switch_aarch64 COMMAND ${CLANG_WITH_ALL_TARGETS} --target=aarch64-linux-gnu -c -o
           ${PROJECT_BINARY_DIR}/switch_aarch64.o ${PROJECT_SOURCE_DIR}/kernels/cuda/simt/switch.cpp)
  set_tests_properties(cuda_switch_aarch64 PROPERTIES LABELS unit)
endif()
