#include "core/registry.h"

#include <gtest/gtest.h>

namespace headflow::registry_test {
namespace {

const auto same = [](const std::string& name) { return name; };

Registry<std::string> some() { return {"a name", {std::make_shared<const std::string>("one")}}; }

TEST(Registry, KnowsWhatItBringsAndWhatIsAdded) {
  Registry<std::string> names = some();
  names.add(std::make_shared<const std::string>("two"), same);
  ASSERT_EQ(names.all().size(), 2u);
  EXPECT_EQ(*names.all()[1], "two");
  EXPECT_THROW(names.add(std::make_shared<const std::string>("one"), same), Error);
}

TEST(Registry, RefusesWhatComesTooLate) {
  Registry<std::string> names = some();
  names.close();
  EXPECT_THROW(names.add(std::make_shared<const std::string>("two"), same), Error);
  EXPECT_EQ(names.all().size(), 1u);
}

}  // namespace
}  // namespace headflow::registry_test
