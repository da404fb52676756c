# Writes the commit of SOURCE to OUTPUT, touching it only when it changed. Where the commit does not
# say what the sources are (uncommitted changes, no checkout), a fingerprint of them follows: what
# one such build has stored is never taken for what another computes.
execute_process(COMMAND git -C ${SOURCE} describe --always --dirty --abbrev=12 --exclude=*
                OUTPUT_VARIABLE commit OUTPUT_STRIP_TRAILING_WHITESPACE ERROR_QUIET)
if(NOT commit)
  set(commit "unknown")
endif()
execute_process(COMMAND git -C ${SOURCE} status --porcelain -- src cmake CMakeLists.txt
                OUTPUT_VARIABLE changed OUTPUT_STRIP_TRAILING_WHITESPACE ERROR_QUIET)
if(changed AND NOT commit MATCHES "-dirty$")  # files that are not in the repository, too
  string(APPEND commit "-dirty")
endif()
if(commit MATCHES "unknown|-dirty$")
  file(GLOB_RECURSE sources ${SOURCE}/src/*.cc ${SOURCE}/src/*.h ${SOURCE}/cmake/*.cmake)
  list(APPEND sources ${SOURCE}/CMakeLists.txt)
  list(SORT sources)
  set(all "")
  foreach(source ${sources})
    file(SHA256 ${source} sum)
    string(APPEND all "${source} ${sum}\n")
  endforeach()
  string(REPLACE "${SOURCE}/" "" all "${all}")
  string(SHA256 all "${all}")
  string(SUBSTRING ${all} 0 12 all)
  set(commit "${commit}-${all}")
endif()
file(CONFIGURE OUTPUT ${OUTPUT} CONTENT "#define HEADFLOW_COMMIT \"${commit}\"\n")
