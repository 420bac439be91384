# The CUDA kernels twice: as C++ for the emulated device, everywhere, and by a CUDA compiler where there is one. These
# are for a plugin that the program loads at run time: the program itself never links a CUDA library, so the same binary
# starts on a machine without a driver.

file(GLOB FORETOKEN_CUDA_SOURCES CONFIGURE_DEPENDS ${PROJECT_SOURCE_DIR}/kernels/cuda/*.cu)

# A compiler decides by the ending what a file is, so each .cu gets a .cpp that includes it.
set(emulated_units "")
foreach(source IN LISTS FORETOKEN_CUDA_SOURCES)
  get_filename_component(name ${source} NAME_WE)
  set(unit ${PROJECT_BINARY_DIR}/emulated/${name}.cpp)
  file(CONFIGURE OUTPUT ${unit} CONTENT "#include \"kernels/cuda/${name}.cu\"\n" @ONLY)
  list(APPEND emulated_units ${unit})
endforeach()
file(GLOB simt_sources CONFIGURE_DEPENDS ${PROJECT_SOURCE_DIR}/kernels/cuda/simt/*.cpp)
file(GLOB cuda_host_sources CONFIGURE_DEPENDS ${PROJECT_SOURCE_DIR}/kernels/cuda/*.cpp)
# Files named library_* call the vendor's libraries, which only a CUDA toolkit has.
set(cuda_library_sources ${cuda_host_sources})
list(FILTER cuda_library_sources INCLUDE REGEX "/library_[a-z_]+\\.cpp$")
list(FILTER cuda_host_sources EXCLUDE REGEX "/library_[a-z_]+\\.cpp$")
find_package(Threads REQUIRED)
add_library(foretoken_kernels_cuda_emulated STATIC EXCLUDE_FROM_ALL ${emulated_units} ${cuda_host_sources}
            ${simt_sources})
target_include_directories(foretoken_kernels_cuda_emulated PUBLIC ${PROJECT_SOURCE_DIR})
target_compile_features(foretoken_kernels_cuda_emulated PUBLIC cxx_std_20)
# Sums must be rounded where the kernels say so, as nvcc is told by __fmul_rn.
target_compile_options(foretoken_kernels_cuda_emulated PRIVATE -ffp-contract=off)
# Loops are unrolled for nvcc; g++ knows the pragma by another name.
target_compile_options(foretoken_kernels_cuda_emulated PUBLIC $<$<CXX_COMPILER_ID:GNU>:-Wno-unknown-pragmas>)
target_link_libraries(foretoken_kernels_cuda_emulated PUBLIC Threads::Threads)
set_target_properties(foretoken_kernels_cuda_emulated PROPERTIES UNITY_BUILD OFF)

set(FORETOKEN_HAS_CUDA OFF)
if(NOT FORETOKEN_CUDA)
  message(STATUS "foretoken: CUDA switched off: CPU backend only")
  return()
endif()

include(CheckLanguage)
check_language(CUDA)
if(NOT CMAKE_CUDA_COMPILER)
  message(STATUS "foretoken: CUDA not found: CPU backend only")
  return()
endif()
find_package(CUDAToolkit QUIET)
if(NOT CUDAToolkit_FOUND)
  message(STATUS "foretoken: CUDA compiler found without its toolkit: CPU backend only")
  return()
endif()
set(cuda_version "${CUDAToolkit_VERSION_MAJOR}.${CUDAToolkit_VERSION_MINOR}")
if(NOT FORETOKEN_CUDA_SOURCES)
  message(STATUS "foretoken: CUDA found (${cuda_version}); this version has no CUDA kernels: CPU backend only")
  return()
endif()

if(NOT CMAKE_CUDA_ARCHITECTURES)
  set(CMAKE_CUDA_ARCHITECTURES 80-real 90a-real 90-virtual)
endif()
enable_language(CUDA)
set(CMAKE_CUDA_STANDARD 20)
set(CMAKE_CUDA_STANDARD_REQUIRED ON)
if(NOT CMAKE_CUDA20_STANDARD_COMPILE_OPTION)  # CMake 3.25.1 does not know this flag of nvcc 13
  set(CMAKE_CUDA20_STANDARD_COMPILE_OPTION "-std=c++20")
  set(CMAKE_CUDA20_EXTENSION_COMPILE_OPTION "-std=c++20")
endif()
add_library(foretoken_kernels_cuda OBJECT ${FORETOKEN_CUDA_SOURCES} ${cuda_host_sources} ${cuda_library_sources})
target_include_directories(foretoken_kernels_cuda PUBLIC ${PROJECT_SOURCE_DIR})
target_link_libraries(foretoken_kernels_cuda PUBLIC CUDA::cudart_static CUDA::cublasLt)
target_compile_definitions(foretoken_kernels_cuda PUBLIC FORETOKEN_CUDA_PLUGIN)
set(FORETOKEN_HAS_CUDA ON)
message(STATUS "foretoken: CUDA found (${cuda_version}), kernels built")
