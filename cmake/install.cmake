# `make install`. A folder that was installed may be moved.

# The libraries: find_package(headflow) gives headflow::core, headflow::study and headflow::io. Headers find each
# other by folder, under include/headflow; vectorised code is compiled with ours and stays here.
include(CMakePackageConfigHelpers)
set(package ${CMAKE_INSTALL_LIBDIR}/cmake/headflow)
foreach(name core study io)
  if(TARGET headflow_${name})
    install(TARGETS headflow_${name} EXPORT headflow ARCHIVE DESTINATION ${CMAKE_INSTALL_LIBDIR})
    get_target_property(folders headflow_${name} HEADFLOW_FOLDERS)
    foreach(folder IN LISTS folders)
      install(DIRECTORY src/${folder} DESTINATION ${CMAKE_INSTALL_INCLUDEDIR}/headflow
              FILES_MATCHING PATTERN *.h PATTERN *-inl.h EXCLUDE PATTERN simd_dispatch.h EXCLUDE)
    endforeach()
  endif()
endforeach()
install(EXPORT headflow NAMESPACE headflow:: FILE headflowTargets.cmake DESTINATION ${package})
configure_package_config_file(cmake/headflowConfig.cmake.in ${PROJECT_BINARY_DIR}/generated/headflowConfig.cmake
                              INSTALL_DESTINATION ${package})
write_basic_package_version_file(${PROJECT_BINARY_DIR}/generated/headflowConfigVersion.cmake COMPATIBILITY SameMinorVersion)
install(FILES ${PROJECT_BINARY_DIR}/generated/headflowConfig.cmake ${PROJECT_BINARY_DIR}/generated/headflowConfigVersion.cmake
        DESTINATION ${package})
install(FILES LICENSE README.md CHANGELOG.md CITATION.cff DESTINATION share/doc/headflow)

# The program: PREFIX/bin/headflow finds PREFIX/share/headflow from where it stands.
if(NOT HEADFLOW_PROGRAM)
  return()
endif()
install(TARGETS headflow RUNTIME DESTINATION bin)
install(DIRECTORY docs DESTINATION share/headflow FILES_MATCHING PATTERN *.md PATTERN images EXCLUDE)
install(DIRECTORY configs DESTINATION share/headflow)
install(DIRECTORY python/headflow DESTINATION share/headflow/python
        FILES_MATCHING PATTERN *.py PATTERN *.css PATTERN *.js PATTERN *.html PATTERN __pycache__ EXCLUDE)

# The manual page and the completions are what the program says of itself.
function(headflow_install_output folder file)
  string(REPLACE ";" " " arguments "${ARGN}")
  install(CODE "
    set(made \"${PROJECT_BINARY_DIR}/generated/${file}\")
    execute_process(COMMAND \"$<TARGET_FILE:headflow>\" ${arguments} OUTPUT_FILE \"\${made}\" RESULT_VARIABLE code)
    if(NOT code EQUAL 0)
      message(FATAL_ERROR \"headflow ${arguments} failed: \${code}\")
    endif()
    file(INSTALL \"\${made}\" DESTINATION \"\${CMAKE_INSTALL_PREFIX}/${folder}\")")
endfunction()
headflow_install_output(share/man/man1 headflow.1 man)
headflow_install_output(share/bash-completion/completions headflow completion bash)
headflow_install_output(share/zsh/site-functions _headflow completion zsh)
headflow_install_output(share/fish/vendor_completions.d headflow.fish completion fish)
