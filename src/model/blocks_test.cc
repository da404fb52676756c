#include "model/blocks.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <utility>

#include "core/error.h"
#include "model/activation.h"

namespace headflow::blocks_test {
namespace {

constexpr Sizes kSizes{5, 3, 2};  // L, H, F

/// One of each kind.
std::vector<BlockInfo> kinds() {
  return {{"b", "bias of a head", {Axis::head}},
          {"w", "weight of a feature for a head", {Axis::head, Axis::feature}},
          {"t", "bias of a token", {Axis::token}},
          {"v", "scale", {}, [](const Sizes& n) { return 10.0 * n.L + n.H; }}};
}

Blocks numbered() {
  Blocks out(std::make_shared<const BlockLayout>(kinds(), kSizes));
  out.values().setLinSpaced(0.0, static_cast<double>(out.size() - 1));
  return out;
}

Vector list(std::initializer_list<double> values) {
  Vector out(static_cast<Eigen::Index>(values.size()));
  std::copy(values.begin(), values.end(), out.begin());
  return out;
}

/// What an Error says, or nothing.
template <class Body>
std::string complaint(const Body& body) {
  try {
    body();
  } catch (const Error& e) {
    return e.what();
  }
  return "";
}

TEST(Blocks, OneAfterTheOther) {
  const BlockLayout layout(kinds(), kSizes);
  EXPECT_EQ(layout.sizes(), kSizes);
  EXPECT_EQ(layout.size(), 3 + 3 * 2 + 5 + 1);
  ASSERT_EQ(layout.entries().size(), 4u);
  const std::vector<Eigen::Index> shapes[] = {{3}, {3, 2}, {5}, {}};
  Eigen::Index offset = 0;
  for (std::size_t i = 0; i < 4; ++i) {
    const BlockLayout::Entry& e = layout.entries()[i];
    SCOPED_TRACE(e.info.name);
    EXPECT_EQ(e.shape, shapes[i]);
    EXPECT_EQ(e.offset, offset);
    EXPECT_EQ(e.per_head(), i < 2);
    EXPECT_EQ(layout.find(e.info.name), &e);
    offset += e.size;
  }
  EXPECT_EQ(offset, layout.size());
  for (const char* unknown : {"", "B", "bb", "m"}) EXPECT_EQ(layout.find(unknown), nullptr);
  EXPECT_EQ(BlockLayout({}, kSizes).size(), 0);
}

TEST(Blocks, AreFoundByName) {
  Blocks blocks = numbered();
  const Blocks& constant = blocks;
  EXPECT_EQ(constant["b"], list({0, 1, 2}));
  EXPECT_EQ(constant["w"], list({3, 4, 5, 6, 7, 8}));
  EXPECT_EQ(constant["t"], list({9, 10, 11, 12, 13}));
  EXPECT_EQ(constant["v"], list({14}));
  blocks["t"].setZero();  // the numbers themselves, not a copy
  EXPECT_EQ(blocks.values().segment(8, 7), list({8, 0, 0, 0, 0, 0, 14}));
  Blocks copy = blocks;
  copy["v"][0] = 1;
  EXPECT_EQ(blocks["v"][0], 14);
}

TEST(Blocks, UnknownNamesAreErrors) {
  Blocks blocks = numbered(), none, numbers(Vector::Ones(3));
  for (Blocks* any : {&blocks, &none, &numbers}) {
    EXPECT_FALSE(any->has("x"));
    EXPECT_EQ(complaint([&] { (*any)["x"]; }), "this activation has no block x");
    EXPECT_EQ(complaint([&] { std::as_const(*any)["x"]; }), "this activation has no block x");
  }
  EXPECT_TRUE(blocks.has("b"));
  EXPECT_EQ(complaint([&] { blocks["b"]; }), "");
  // Numbers alone have no names.
  EXPECT_EQ(numbers.size(), 3);
  EXPECT_TRUE(numbers.entries().empty() && none.entries().empty());
  EXPECT_FALSE(numbers.has("b") || none.has("b"));
}

TEST(Blocks, StartAtTheirInitialValues) {
  Blocks blocks = numbered();
  set_initial(blocks);
  EXPECT_EQ(blocks["v"][0], 53);
  EXPECT_EQ(blocks.values().head(14), Vector(Vector::Zero(14)));
  Blocks none;
  set_initial(none);
  EXPECT_EQ(none.size(), 0);
}

TEST(Blocks, OfSomeHeads) {
  const Blocks blocks = numbered(), some = blocks.of_heads({2, 0});
  EXPECT_EQ(some.layout()->sizes(), (Sizes{5, 2, 2}));
  EXPECT_EQ(some["b"], list({2, 0}));
  EXPECT_EQ(some["w"], list({7, 8, 3, 4}));
  EXPECT_EQ(some["t"], blocks["t"]);
  EXPECT_EQ(some["v"], blocks["v"]);
  EXPECT_EQ(blocks.of_heads({0, 1, 2}).values(), blocks.values());
  EXPECT_EQ(Blocks().of_heads({0}).size(), 0);

  // Along every axis of heads, wherever it stands.
  const std::vector<BlockInfo> pairs = {{"c", "of two heads", {Axis::head, Axis::other_head}},
                                        {"d", "of a feature", {Axis::feature, Axis::head}}};
  Blocks of_pairs(std::make_shared<const BlockLayout>(pairs, kSizes));
  for (Eigen::Index i = 0; i < of_pairs.size(); ++i) of_pairs.values()[i] = static_cast<double>(i);
  const Blocks turned = of_pairs.of_heads({2, 0});
  EXPECT_EQ(turned["c"], list({8, 6, 2, 0}));
  EXPECT_EQ(turned["d"], list({11, 9, 14, 12}));
}

}  // namespace
}  // namespace headflow::blocks_test
