#include <gtest/gtest.h>

#include "model/prior.h"
#include "study/keys.h"

namespace headflow::keys_registry_test {
namespace {

// Whoever adds a prior (or an activation) after the table of keys was made is told: its parameters
// would have no keys.
TEST(Keys, CloseTheRegistries) {
  ASSERT_FALSE(keys().empty());
  PriorInfo prior = *priors().front();
  prior.name = "late";
  EXPECT_THROW(register_prior(prior), Error);
  EXPECT_THROW(find_prior("late"), OptionError);
}

}  // namespace
}  // namespace headflow::keys_registry_test
