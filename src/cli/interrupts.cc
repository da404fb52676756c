// Ctrl-C, SIGTERM and SIGHUP. A handler says what happens next, and does no more than write() and a
// flag: nothing else is allowed in it.

#include <unistd.h>

#include <atomic>
#include <csignal>
#include <cstring>
#include <ctime>

#include "cli/command.h"

namespace headflow::cli {
namespace {

volatile std::sig_atomic_t interrupt_flag = 0;
volatile std::sig_atomic_t keeps_results = 0;
volatile std::sig_atomic_t on_terminal = 0;

constexpr double kInterruptGrace = 0.3;  // seconds
std::atomic<double> interrupt_time = 0;
static_assert(std::atomic<double>::is_always_lock_free);  // so that a handler may set it

double seconds_now() {
  timespec time{};
  ::clock_gettime(CLOCK_MONOTONIC, &time);
  return static_cast<double>(time.tv_sec) + 1e-9 * static_cast<double>(time.tv_nsec);
}

void say_at_once(const char* text) {
  if (on_terminal) static_cast<void>(!::write(STDERR_FILENO, "\n", 1));  // below the progress bar
  static_cast<void>(!::write(STDERR_FILENO, text, std::strlen(text)));
}

void handle_interrupt(int signal) {
  if (!keeps_results) {
    say_at_once("headflow: interrupted; there is nothing to keep; give the same command again\n");
    std::_Exit(kInterrupted);
  }
  // A terminal that closes may send SIGHUP twice: only a second Ctrl-C is final.
  if (interrupt_flag != 0 && signal == SIGINT) std::_Exit(kInterrupted);
  if (interrupt_flag == 0) {
    interrupt_time = seconds_now();
    say_at_once(
        "headflow: interrupted; stopping and keeping what there is (Ctrl-C again: at once)\n");
  }
  interrupt_flag = 1;
}

}  // namespace

bool interrupted() { return interrupt_flag != 0; }

bool computations_go_on() {
  return interrupt_flag == 0 || seconds_now() < interrupt_time + kInterruptGrace;
}

void catch_interrupts() { keeps_results = 1; }

void stop_at_once_when_interrupted() {
  on_terminal = ::isatty(STDERR_FILENO);
  struct sigaction action {};
  action.sa_handler = handle_interrupt;
  action.sa_flags = SA_RESTART;
  for (const int signal : {SIGINT, SIGTERM, SIGHUP}) {
    struct sigaction before {};
    ::sigaction(signal, nullptr, &before);
    if (signal == SIGHUP && before.sa_handler == SIG_IGN) continue;  // nohup
    ::sigaction(signal, &action, nullptr);
  }
}

}  // namespace headflow::cli
