# `make install`: PREFIX/bin/headflow finds PREFIX/share/headflow from where it stands, so a folder that was
# installed may be moved. A program that was not installed finds the source that it was built from.
set_source_files_properties(src/cli/python.cc PROPERTIES COMPILE_DEFINITIONS "HEADFLOW_SOURCE=\"${CMAKE_SOURCE_DIR}\"")

install(TARGETS headflow RUNTIME DESTINATION bin)
install(DIRECTORY docs DESTINATION share/headflow FILES_MATCHING PATTERN *.md PATTERN images EXCLUDE)
install(DIRECTORY figures configs DESTINATION share/headflow PATTERN __pycache__ EXCLUDE)
install(FILES LICENSE README.md CHANGELOG.md CITATION.cff DESTINATION share/doc/headflow)

# The manual page and the completions are what the program says of itself.
function(headflow_install_output folder file)
  string(REPLACE ";" " " arguments "${ARGN}")
  install(CODE "
    set(made \"${CMAKE_BINARY_DIR}/generated/${file}\")
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
