#include "core/fingerprint.h"

#include <gtest/gtest.h>

#include <set>

namespace headflow::fingerprint_test {
namespace {

// Published values of FNV-1a, 128 bits.
TEST(Fingerprint, IsThePublishedFunction) {
  EXPECT_EQ(fingerprint("").text(), "6c62272e07bb014262b821756295c58d");
  EXPECT_EQ(fingerprint("a").text(), "d228cb696f1a8caf78912b704e4a8964");
  EXPECT_EQ(fingerprint("foobar").text(), "343e1662793c64bf6f0d3597ba446f18");
}

TEST(Fingerprint, OneChangedByteIsSeen) {
  const std::string text = "values = [0.1234567890123456, 2.0]";
  std::set<Fingerprint> seen{fingerprint(text)};
  for (std::size_t i = 0; i < text.size(); ++i) {
    for (int c = 0; c < 256; ++c) {
      std::string other = text;
      other[i] = static_cast<char>(c);
      if (other != text) {
        EXPECT_TRUE(seen.insert(fingerprint(other)).second);
      }
    }
  }
}

}  // namespace
}  // namespace headflow::fingerprint_test
