#pragma once

// How much of a costly test is run. `make test` thins statistics, `make test-all` does not
// (HEADFLOW_TEST_EFFORT=full), and with sanitizers, where the same code is ten times slower, a test
// only has to go through it.

#include <cstdlib>
#include <string_view>

namespace headflow::testing {

enum class Effort { sanitized, thin, full };

inline Effort effort() {
#ifdef HEADFLOW_SANITIZE
  return Effort::sanitized;
#else
  const char* wanted = std::getenv("HEADFLOW_TEST_EFFORT");
  return wanted && std::string_view(wanted) == "full" ? Effort::full : Effort::thin;
#endif
}

/// True of every n-th of the cases of a loop, which are all there is with sanitizers; of all else.
inline bool left_out(int number, int n) { return effort() == Effort::sanitized && number % n != 0; }

template <class T>
T by_effort(T sanitized, T thin, T full) {
  switch (effort()) {
    case Effort::sanitized: return sanitized;
    case Effort::thin: return thin;
    default: return full;
  }
}

}  // namespace headflow::testing
