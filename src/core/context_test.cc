#include "core/context.h"

#include <gtest/gtest.h>

namespace headflow::context_test {
namespace {

class Told final : public Observer {
 public:
  Wish wish() const override { return now; }
  void status(const Status&) override { ++count; }
  Wish now = Wish::go_on;
  int count = 0;
};

TEST(Context, OrWhenAddsAConditionToTheWishThatThereIs) {
  const auto told = std::make_shared<Told>();
  bool holds = false;
  const Context context = Context().watched_by(told).or_when([&] { return holds; });
  EXPECT_TRUE(context.goes_on());
  holds = true;
  EXPECT_FALSE(context.goes_on());
  EXPECT_NO_THROW(context.check());  // at the end of a step is soon enough
  told->now = Wish::stop_now;
  EXPECT_THROW(context.check(), Interrupted);
  context.status({});
  EXPECT_EQ(told->count, 1);
  const Context alone = Context().or_when([&] { return holds; });
  EXPECT_FALSE(alone.goes_on());
}

}  // namespace
}  // namespace headflow::context_test
