# GPU code as C++ that the emulator runs (THIMBLE_CUDA=EMULATED). cmake/library.cmake includes this
# instead of compiling it for GPUs.
find_package(Python3 3.9 REQUIRED COMPONENTS Interpreter)
find_package(CUDAToolkit REQUIRED)  # only its headers

set(THIMBLE_EMULATOR_FOLDER ${CMAKE_CURRENT_LIST_DIR})

# Settings for code that was translated.
add_library(thimble_emulated INTERFACE)
target_include_directories(thimble_emulated BEFORE INTERFACE ${THIMBLE_EMULATOR_FOLDER}/include
  ${PROJECT_SOURCE_DIR})
target_include_directories(thimble_emulated SYSTEM INTERFACE ${CUDAToolkit_INCLUDE_DIRS})
target_link_libraries(thimble_emulated INTERFACE thimble_options)
# A product is fused with a sum only where the source says so, as on GPUs (--fmad=false). nvcc gives
# the warnings.
target_compile_options(thimble_emulated INTERFACE -ffp-contract=off -w)
# Reports of sanitizers name lines.
target_compile_options(thimble_emulated INTERFACE $<$<BOOL:${THIMBLE_SANITIZE}>:-g1>)
# What is unordered on a GPU is a race for ThreadSanitizer.
if(THIMBLE_SANITIZE MATCHES "thread")
  target_compile_definitions(thimble_emulated INTERFACE THIMBLE_EMULATOR_FINDS_RACES)
endif()

# thimble_translate(FROM TO OUTPUTS FILE...): sets OUTPUTS to the translated files, which have the
# same paths below TO. Those that did not change are not written again.
function(thimble_translate from to outputs)
  set(sources ${ARGN})
  list(TRANSFORM sources PREPEND ${from}/)
  set(translated ${ARGN})
  list(TRANSFORM translated PREPEND ${to}/)
  list(TRANSFORM translated APPEND .cc REGEX "\\.cu$")
  add_custom_command(OUTPUT ${translated}
    COMMAND ${Python3_EXECUTABLE} -B ${THIMBLE_EMULATOR_FOLDER}/translate.py ${from} ${to} ${ARGN}
    DEPENDS ${THIMBLE_EMULATOR_FOLDER}/translate.py ${sources}
    COMMENT "Translating GPU code for the emulator" VERBATIM)
  set(${outputs} ${translated} PARENT_SCOPE)
endfunction()

file(GLOB emulator_sources CONFIGURE_DEPENDS ${THIMBLE_EMULATOR_FOLDER}/*.cc)
add_library(thimble_gpu_emulator OBJECT ${emulator_sources})
target_link_libraries(thimble_gpu_emulator PRIVATE thimble_emulated)
target_compile_options(thimble_gpu_emulator PRIVATE -O2)
if(THIMBLE_SANITIZE MATCHES "thread")
  # Fibers take turns, which ThreadSanitizer does not know.
  set_source_files_properties(${emulator_sources} PROPERTIES COMPILE_OPTIONS -fno-sanitize=thread)
endif()
target_sources(thimble PRIVATE $<TARGET_OBJECTS:thimble_gpu_emulator>)

# A folder that is searched before src/.
set(emulated_source ${CMAKE_BINARY_DIR}/emulated)
file(GLOB_RECURSE gpu_files CONFIGURE_DEPENDS RELATIVE ${PROJECT_SOURCE_DIR}/src
  ${PROJECT_SOURCE_DIR}/src/*.cu ${PROJECT_SOURCE_DIR}/src/*.cuh)
thimble_translate(${PROJECT_SOURCE_DIR}/src ${emulated_source}/thimble translated ${gpu_files})
add_library(thimble_gpu_code OBJECT ${translated})
target_include_directories(thimble_gpu_code BEFORE PRIVATE ${emulated_source}
  ${CMAKE_BINARY_DIR}/include)
target_link_libraries(thimble_gpu_code PRIVATE thimble_emulated)
target_compile_options(thimble_gpu_code PRIVATE -O1)
target_sources(thimble PRIVATE $<TARGET_OBJECTS:thimble_gpu_code>)

target_include_directories(thimble_settings SYSTEM INTERFACE ${CUDAToolkit_INCLUDE_DIRS})
target_compile_definitions(thimble INTERFACE THIMBLE_WITH_CUDA)
