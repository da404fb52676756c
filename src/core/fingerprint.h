#pragma once

// FNV-1a with 128 bits: names for what was computed, and checksums of what was stored. Every step
// is a bijection of the state, so that texts of equal length that differ in one byte always differ
// in their fingerprints.

#include <cstdint>
#include <string>
#include <string_view>

namespace headflow {

struct Fingerprint {
  std::uint64_t high = 0x6c62272e07bb0142, low = 0x62b821756295c58d;

  friend bool operator==(const Fingerprint&, const Fingerprint&) = default;
  friend auto operator<=>(const Fingerprint&,
                          const Fingerprint&) = default;  // NOLINT(modernize-use-nullptr)

  /// 32 hexadecimal digits.
  std::string text() const {
    constexpr std::string_view digits = "0123456789abcdef";
    std::string out(32, '0');
    for (std::size_t i = 0; i < 16; ++i) {
      out[15 - i] = digits[high >> (4 * i) & 15];
      out[31 - i] = digits[low >> (4 * i) & 15];
    }
    return out;
  }
};

inline Fingerprint fingerprint(std::string_view text) {
  Fingerprint out;
  for (const char c : text) {
    out.low ^= static_cast<unsigned char>(c);
    // times 2^88 + 0x13b, modulo 2^128
    constexpr std::uint64_t factor = 0x13b;
    const std::uint64_t lower = (out.low & 0xffffffff) * factor;
    const std::uint64_t upper = (out.low >> 32) * factor + (lower >> 32);
    out.high = out.high * factor + (upper >> 32) + (out.low << 24);
    out.low = upper << 32 | (lower & 0xffffffff);
  }
  return out;
}

}  // namespace headflow
