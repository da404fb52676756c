#include "dynamics/portable.h"

namespace headflow {

std::unique_ptr<Integrator> make_explicit(const Field& field, const Vector& y0, double relative,
                                          double absolute) {
  return make_dormand_prince(field, y0, relative, absolute);
}

std::unique_ptr<Integrator> make_implicit(const Field& field, const Vector& y0, double relative,
                                          double absolute, const Context& context,
                                          const FieldSlopes& slopes) {
  return make_bdf(field, y0, relative, absolute, context, slopes);
}

}  // namespace headflow
