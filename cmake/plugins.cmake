# The backends that the program opens at run time, each a shared object with a runtime of its own: the same sources over
# a CUDA device, and over its emulation.

file(GLOB cuda_backend CONFIGURE_DEPENDS ${PROJECT_SOURCE_DIR}/backend/cuda/*.cpp)
list(FILTER cuda_backend EXCLUDE REGEX "/runtime_(cuda|emulated)\\.cpp$")

# foretoken_plugin(NAME RUNTIME KERNELS): libforetoken_NAME.so.
function(foretoken_plugin NAME RUNTIME KERNELS)
  add_library(foretoken_${NAME} MODULE ${cuda_backend} ${PROJECT_SOURCE_DIR}/backend/cuda/runtime_${RUNTIME}.cpp)
  target_link_libraries(foretoken_${NAME} PRIVATE foretoken_${KERNELS} foretoken_backend)
  # Program and plugin hold the same libraries; neither may end up with the other's.
  target_link_options(foretoken_${NAME} PRIVATE -Wl,--exclude-libs,ALL)
  set_target_properties(foretoken_${NAME} PROPERTIES CXX_VISIBILITY_PRESET hidden
    LIBRARY_OUTPUT_DIRECTORY ${PROJECT_BINARY_DIR})
endfunction()

foretoken_plugin(cuda_emulated emulated kernels_cuda_emulated)
if(FORETOKEN_HAS_CUDA)
  foretoken_plugin(cuda cuda kernels_cuda)
endif()
