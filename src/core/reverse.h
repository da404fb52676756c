#pragma once

// Reverse-mode automatic differentiation: every operation on a Reverse number is written on a tape
// with its partial derivatives, and going back along the tape gives the derivatives of one result
// (or of a weighted sum of results) with respect to all inputs, for a few times the cost of the
// formula itself.
//
//   Tape tape;
//   Reverse x = tape.input(2.0), y = x * exp(-x);
//   tape.clear_adjoints();
//   tape.add_adjoint(y, 1.0);
//   tape.go_back();
//   tape.adjoint(x);               // dy/dx

#include <cmath>
#include <cstddef>
#include <vector>

namespace headflow {

class Reverse;

class Tape {
 public:
  Reverse input(double value);
  void clear() { nodes_.clear(); }

  void clear_adjoints() { adjoints_.assign(nodes_.size(), 0.0); }
  void add_adjoint(const Reverse& x, double adjoint);
  void go_back();
  double adjoint(const Reverse& x) const;

 private:
  friend class Reverse;
  struct Node {
    std::size_t a, b;
    double da, db;
  };
  std::size_t push(std::size_t a, double da, std::size_t b, double db) {
    nodes_.push_back({a, b, da, db});
    return nodes_.size() - 1;
  }
  std::vector<Node> nodes_;
  std::vector<double> adjoints_;
};

class Reverse {
 public:
  Reverse() = default;
  Reverse(double value) : value_(value) {}  // NOLINT(google-explicit-constructor): a constant

  double value() const { return value_; }

  /// A function of one number, with its value and its derivative.
  static Reverse unary(const Reverse& x, double value, double derivative) {
    if (!x.tape_) return value;
    return {x.tape_, value, x.tape_->push(x.node_, derivative, x.node_, 0.0)};
  }
  static Reverse binary(const Reverse& x, const Reverse& y, double value, double dx, double dy) {
    if (!x.tape_) return unary(y, value, dy);
    if (!y.tape_) return unary(x, value, dx);
    return {x.tape_, value, x.tape_->push(x.node_, dx, y.node_, dy)};
  }

  friend Reverse operator+(const Reverse& x, const Reverse& y) {
    return binary(x, y, x.value_ + y.value_, 1, 1);
  }
  friend Reverse operator-(const Reverse& x, const Reverse& y) {
    return binary(x, y, x.value_ - y.value_, 1, -1);
  }
  friend Reverse operator*(const Reverse& x, const Reverse& y) {
    return binary(x, y, x.value_ * y.value_, y.value_, x.value_);
  }
  friend Reverse operator/(const Reverse& x, const Reverse& y) {
    const double q = x.value_ / y.value_;
    return binary(x, y, q, 1 / y.value_, -q / y.value_);
  }
  friend Reverse operator-(const Reverse& x) { return unary(x, -x.value_, -1); }
  Reverse& operator+=(const Reverse& y) { return *this = *this + y; }
  Reverse& operator-=(const Reverse& y) { return *this = *this - y; }
  Reverse& operator*=(const Reverse& y) { return *this = *this * y; }
  Reverse& operator/=(const Reverse& y) { return *this = *this / y; }
  friend bool operator<(const Reverse& x, const Reverse& y) { return x.value_ < y.value_; }
  friend bool operator>(const Reverse& x, const Reverse& y) { return x.value_ > y.value_; }
  friend bool operator<=(const Reverse& x, const Reverse& y) { return x.value_ <= y.value_; }
  friend bool operator>=(const Reverse& x, const Reverse& y) { return x.value_ >= y.value_; }

 private:
  friend class Tape;
  Reverse(Tape* tape, double value, std::size_t node) : tape_(tape), value_(value), node_(node) {}
  Tape* tape_ = nullptr;
  double value_ = 0;
  std::size_t node_ = 0;
};

inline Reverse Tape::input(double value) { return {this, value, push(0, 0.0, 0, 0.0)}; }

inline void Tape::add_adjoint(const Reverse& x, double adjoint) {
  if (x.tape_) adjoints_[x.node_] += adjoint;
}

inline void Tape::go_back() {
  for (std::size_t i = nodes_.size(); i-- > 0;) {
    const double adjoint = adjoints_[i];
    if (adjoint == 0.0) continue;
    adjoints_[nodes_[i].a] += nodes_[i].da * adjoint;
    adjoints_[nodes_[i].b] += nodes_[i].db * adjoint;
  }
}

inline double Tape::adjoint(const Reverse& x) const { return x.tape_ ? adjoints_[x.node_] : 0.0; }

inline double value_of(const Reverse& x) { return x.value(); }
inline Reverse exp(const Reverse& x) {
  const double e = std::exp(x.value());
  return Reverse::unary(x, e, e);
}
inline Reverse expm1(const Reverse& x) {
  return Reverse::unary(x, std::expm1(x.value()), std::exp(x.value()));
}
inline Reverse log(const Reverse& x) {
  return Reverse::unary(x, std::log(x.value()), 1 / x.value());
}
inline Reverse log1p(const Reverse& x) {
  return Reverse::unary(x, std::log1p(x.value()), 1 / (1 + x.value()));
}
inline Reverse sqrt(const Reverse& x) {
  const double root = std::sqrt(x.value());
  return Reverse::unary(x, root, 0.5 / root);
}
inline Reverse tanh(const Reverse& x) {
  const double t = std::tanh(x.value());
  return Reverse::unary(x, t, 1 - t * t);
}
inline Reverse abs(const Reverse& x) {
  return Reverse::unary(x, std::abs(x.value()), x.value() < 0 ? -1 : 1);
}
inline Reverse max(const Reverse& x, const Reverse& y) {
  return x.value() < y.value() ? Reverse::binary(x, y, y.value(), 0, 1)
                               : Reverse::binary(x, y, x.value(), 1, 0);
}

}  // namespace headflow
