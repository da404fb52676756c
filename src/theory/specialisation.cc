#include "theory/specialisation.h"

namespace headflow {

SpecialisationConstants specialisation_constants(int tokens, int heads, double V, double W) {
  const double L = tokens, H = heads, common = 2 * (L - 1) * (L - 2) / (L * L * L);
  return {common * (L - 2) / 2 * V * W / (H * H * L * L),
          common / (H * L) * (3 * (V + W) - V * W * (L * L - 12 * L + 12) / (2 * L)),
          common / (H * H) * (1 + (V + W) / L + V * W * (L - 2) / (L * L))};
}

double softmax_bound(int L) { return L / (4.0 * (L - 1)); }

}  // namespace headflow
