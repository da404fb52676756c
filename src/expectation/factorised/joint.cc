#include "expectation/factorised/quadrature.h"
namespace headflow::factorised {
std::unique_ptr<Quadrature> joint_quadrature(const QuadratureProblem&, const TokenLaws<double>&, const std::vector<double>&, double) { return nullptr; }
}
