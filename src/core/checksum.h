#pragma once

// Checksums of stored files: 64-bit FNV-1a, h <- (h xor byte) * 1099511628211 (mod 2^64). Every
// step is one to one, so that one changed byte, or any change within one number, is always noticed;
// others escape with probability 2^-64. It is no protection against forgery.

#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>

namespace headflow {

class Checksum {
 public:
  void add(const void* data, std::size_t bytes) {
    const auto* byte = static_cast<const unsigned char*>(data);
    for (std::size_t i = 0; i < bytes; ++i) value_ = (value_ ^ byte[i]) * 1099511628211u;
  }
  void add(std::uint64_t number) { add(&number, sizeof number); }
  void add(std::string_view text) {  // its length keeps "ab", "c" from "a", "bc"
    add(std::uint64_t{text.size()});
    add(text.data(), text.size());
  }
  void add(std::span<const double> numbers) { add(numbers.data(), numbers.size_bytes()); }

  std::uint64_t value() const { return value_; }

 private:
  std::uint64_t value_ = 14695981039346656037u;
};

inline std::uint64_t checksum_of(std::string_view text) {
  Checksum sum;
  sum.add(text.data(), text.size());
  return sum.value();
}

}  // namespace headflow
