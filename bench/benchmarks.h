#pragma once

namespace headflow::bench {

void register_roofline();       // roofline.cc
void register_loss_gradient();  // loss_gradient.cc
void register_factorised();     // factorised.cc
void register_sgd();            // sgd.cc

}  // namespace headflow::bench
