#pragma once

#include <cstddef>

#include "core/context.h"

namespace headflow {

/// Loops over independent blocks of work. Results must not depend on who runs a block: each block
/// writes to a place of its own, and the caller then sums the places in order. That, and randomness
/// keyed by work item, is what makes results bit-identical for any number of threads.
class Workers {
 public:
  explicit Workers(const Context& context = {}) : context_(context) {}
  /// At most so many of the context's.
  Workers(const Context& context, int most) : context_(context) {
    if (most < context.executor->workers()) context_.executor = context.executor->limited(most);
  }

  /// At most this many blocks run at once; size per-worker scratch with it.
  int count() const { return context_.executor->workers(); }

  /// Throws Interrupted if it is time to stop; for loops that are not over blocks.
  void check_go_on() const { context_.check(); }

  /// Calls body(block, worker) for block < blocks, with 0 <= worker < count(). Asks whether to go
  /// on before every block: blocks should take well under a second.
  template <class Body>
  void for_each_block(std::size_t blocks, const Body& body) const {
    context_.executor->run(blocks, [&](std::size_t block, int worker) {
      context_.check();
      body(block, worker);
    });
  }

 private:
  Context context_;
};

}  // namespace headflow
