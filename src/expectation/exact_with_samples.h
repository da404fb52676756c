#pragma once

#include <memory>

#include "expectation/engine.h"

namespace headflow {

/// Loss and gradient by one engine, the second moments of the gradient by another, which samples.
/// For limits of SGD that keep its noise: what is sampled is multiplied by kappa = lr D / batch,
/// and so is its error; the rest is as exact as the first engine.
std::unique_ptr<Engine> exact_with_samples(std::unique_ptr<Engine> exact,
                                           std::unique_ptr<Engine> sampled);

}  // namespace headflow
