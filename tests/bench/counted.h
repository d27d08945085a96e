// A number that counts what is done to it: how much arithmetic a formula is.
#ifndef STEPCAST_TESTS_BENCH_COUNTED_H_
#define STEPCAST_TESTS_BENCH_COUNTED_H_

#include <cmath>

namespace stepcast {

struct Operations {
  int additions = 0;  // and subtractions
  int multiplications = 0;
  int divisions = 0;
  int roots = 0;
  int functions = 0;  // exponentials, logarithms and powers
};

struct Counted {
  double a = 0;  // its value, under the name that ValueOf reads

  Counted() = default;
  Counted(double value) : a(value) {}  // NOLINT(google-explicit-constructor): as a double

  static Operations& Done() {
    static Operations done;
    return done;
  }

  Counted operator-() const { return -a; }
  Counted& operator+=(const Counted& o) { return *this = *this + o; }
  Counted& operator-=(const Counted& o) { return *this = *this - o; }

  friend Counted operator+(const Counted& x, const Counted& y) {
    ++Done().additions;
    return x.a + y.a;
  }
  friend Counted operator-(const Counted& x, const Counted& y) {
    ++Done().additions;
    return x.a - y.a;
  }
  friend Counted operator*(const Counted& x, const Counted& y) {
    ++Done().multiplications;
    return x.a * y.a;
  }
  friend Counted operator/(const Counted& x, const Counted& y) {
    ++Done().divisions;
    return x.a / y.a;
  }
  friend bool operator<(const Counted& x, const Counted& y) { return x.a < y.a; }
  friend bool operator>(const Counted& x, const Counted& y) { return x.a > y.a; }
  friend bool operator<=(const Counted& x, const Counted& y) { return x.a <= y.a; }
  friend bool operator>=(const Counted& x, const Counted& y) { return x.a >= y.a; }

  friend Counted sqrt(const Counted& x) {
    ++Done().roots;
    return std::sqrt(x.a);
  }
  friend Counted exp(const Counted& x) { return Function(std::exp(x.a)); }
  friend Counted log(const Counted& x) { return Function(std::log(x.a)); }
  friend Counted expm1(const Counted& x) { return Function(std::expm1(x.a)); }
  friend Counted log1p(const Counted& x) { return Function(std::log1p(x.a)); }
  friend Counted exp2(const Counted& x) { return Function(std::exp2(x.a)); }
  friend Counted log2(const Counted& x) { return Function(std::log2(x.a)); }
  friend Counted pow(const Counted& x, double p) { return Function(std::pow(x.a, p)); }

 private:
  static Counted Function(double value) {
    ++Done().functions;
    return value;
  }
};

}  // namespace stepcast

#endif  // STEPCAST_TESTS_BENCH_COUNTED_H_
