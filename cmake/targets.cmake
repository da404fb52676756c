# How our targets are compiled: flags for each, none for a whole directory.

# Contracting a*b+c behind our back would make bits depend on the compiler's mood.
# GCC 12 sees uninitialised values in optional and variant matrices where there are none, and copies of overlapping texts.
function(headflow_options target)
  target_compile_options(${target} PRIVATE -Wall -Wextra $<$<BOOL:${HEADFLOW_WERROR}>:-Werror> -ffp-contract=off
                         $<$<CXX_COMPILER_ID:GNU>:-Wno-maybe-uninitialized -Wno-restrict>)
  if(HEADFLOW_SANITIZE)
    target_compile_options(${target} PRIVATE -fsanitize=address,undefined -fno-sanitize-recover=all -fno-omit-frame-pointer)
    if(NOT HEADFLOW_SANITIZE_ALL)  # half of the time to compile; the address sanitizer sees most of them, too
      target_compile_options(${target} PRIVATE -fno-sanitize=null,alignment,object-size,vptr,pointer-overflow)
    endif()
    target_link_options(${target} PRIVATE -fsanitize=address,undefined)
    target_compile_definitions(${target} PRIVATE HEADFLOW_SANITIZE)
    # Vectorised loops keep vectors on the stack, which the sanitizer would look after one by one: 5 to 50 times slower.
    get_target_property(sources ${target} SOURCES)
    foreach(source IN LISTS sources)
      headflow_is_vectorised(${source} vectorised)
      if(vectorised AND CMAKE_CXX_COMPILER_ID STREQUAL GNU)
        set_source_files_properties(${source} PROPERTIES COMPILE_OPTIONS "-O2;--param=asan-stack=0")
      endif()
    endforeach()
  endif()
endfunction()

function(headflow_is_vectorised source result)
  file(STRINGS ${source} found REGEX "foreach_target" LIMIT_COUNT 1)
  set(${result} "${found}" PARENT_SCOPE)
endfunction()

# What nearly every file includes, read once, and templates instantiated once: a whole build takes a third
# of the time. Vectorised files include themselves once for each instruction set and stay alone.
# With a number, the files are dealt to so many units instead of one a folder.
function(headflow_unity target)
  if(NOT HEADFLOW_UNITY)
    return()
  endif()
  get_target_property(sources ${target} SOURCES)
  set(number 0)
  foreach(source IN LISTS sources)
    headflow_is_vectorised(${source} vectorised)
    if(vectorised)
      continue()
    endif()
    if(ARGN)
      set(unit part${number})
      math(EXPR number "(${number} + 1) % ${ARGN}")
    else()
      cmake_path(GET source PARENT_PATH folder)
      cmake_path(GET folder FILENAME unit)
    endif()
    set_source_files_properties(${source} PROPERTIES UNITY_GROUP ${unit})
  endforeach()
  set_target_properties(${target} PROPERTIES UNITY_BUILD ON UNITY_BUILD_MODE GROUP)
endfunction()

function(headflow_precompile target)
  if(HEADFLOW_PRECOMPILE)
    target_precompile_headers(${target} PRIVATE <Eigen/Dense> <algorithm> <chrono> <cmath> <filesystem>
      <fmt/format.h> <functional> <map> <memory> <numbers> <optional> <sstream> <string> <variant> <vector> ${ARGN})
  endif()
endfunction()

# headflow_library(NAME FOLDER... WITHOUT FILE...): headflow::NAME, all of src/FOLDER/ but the files named. A
# module's tests stand beside it: those of all libraries are gathered in HEADFLOW_UNIT_TESTS.
function(headflow_library name)
  cmake_parse_arguments(its "" "" "WITHOUT" ${ARGN})
  set(sources "")
  foreach(folder IN LISTS its_UNPARSED_ARGUMENTS)
    file(GLOB_RECURSE found CONFIGURE_DEPENDS ${PROJECT_SOURCE_DIR}/src/${folder}/*.cc)
    list(APPEND sources ${found})
  endforeach()
  list(TRANSFORM its_WITHOUT PREPEND ${PROJECT_SOURCE_DIR}/src/)
  list(REMOVE_ITEM sources ${its_WITHOUT})
  set(tests ${sources})
  list(FILTER tests INCLUDE REGEX "_test\\.cc$")
  list(FILTER sources EXCLUDE REGEX "_test\\.cc$")
  set(HEADFLOW_UNIT_TESTS ${HEADFLOW_UNIT_TESTS} ${tests} PARENT_SCOPE)

  add_library(headflow_${name} STATIC ${sources})
  add_library(headflow::${name} ALIAS headflow_${name})
  set_target_properties(headflow_${name} PROPERTIES EXPORT_NAME ${name} POSITION_INDEPENDENT_CODE ON
                        HEADFLOW_FOLDERS "${its_UNPARSED_ARGUMENTS}")
  target_compile_features(headflow_${name} PUBLIC cxx_std_20)
  target_include_directories(headflow_${name} PUBLIC
    $<BUILD_INTERFACE:${PROJECT_SOURCE_DIR}/src> $<INSTALL_INTERFACE:${CMAKE_INSTALL_INCLUDEDIR}/headflow>)
  headflow_options(headflow_${name})
  headflow_unity(headflow_${name})
  headflow_precompile(headflow_${name})
endfunction()
