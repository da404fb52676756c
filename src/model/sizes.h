#pragma once

namespace headflow {

/// Sizes of the model.
struct Sizes {
  int L = 1;  ///< tokens
  int H = 1;  ///< heads
  int F = 1;  ///< features

  friend bool operator==(const Sizes&, const Sizes&) = default;
};

}  // namespace headflow
