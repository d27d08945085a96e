// Physical quantities with their dimension in the type.
//
// A Quantity holds one number in SI units (second, byte, FLOP, sample) and carries its dimension as
// integer exponents, so that adding a latency to a byte count does not compile. The scalar T is
// double for prediction and ceres::Jet for calibration; nothing here knows Ceres.
//
//   DataSize<> m = Mebibytes(25.0);
//   DataRate<> B = GigabitsPerSecond(10.0);
//   Duration<> t = m / B;
//   t.in(kMilliseconds);   // 20.97
//
// Note that multiplying or dividing quantities whose dimensions cancel yields a plain T.
#ifndef STEPCAST_DATA_UNITS_QUANTITY_H_
#define STEPCAST_DATA_UNITS_QUANTITY_H_

#include <type_traits>

namespace stepcast {

// Exponents of second, byte, FLOP and sample.
template <int TimeExp, int ByteExp, int FlopExp, int SampleExp>
struct Dimension {
  static constexpr int kTime = TimeExp;
  static constexpr int kByte = ByteExp;
  static constexpr int kFlop = FlopExp;
  static constexpr int kSample = SampleExp;
};

template <class A, class B>
using DimensionProduct = Dimension<A::kTime + B::kTime, A::kByte + B::kByte, A::kFlop + B::kFlop,
                                   A::kSample + B::kSample>;
template <class A, class B>
using DimensionQuotient = Dimension<A::kTime - B::kTime, A::kByte - B::kByte, A::kFlop - B::kFlop,
                                    A::kSample - B::kSample>;
using Dimensionless = Dimension<0, 0, 0, 0>;

// A named unit: one of it is `si` SI units.
template <class D>
struct Unit {
  double si;
  const char* symbol;
};

template <class D, class T = double>
class Quantity {
 public:
  using DimensionType = D;
  using Scalar = T;

  constexpr Quantity() : si_(T(0.0)) {}

  // A quantity of doubles converts to one of any scalar (a constant has no derivative).
  template <class U, class = std::enable_if_t<std::is_arithmetic_v<U> && !std::is_same_v<U, T>>>
  constexpr Quantity(const Quantity<D, U>& other) : si_(T(other.si())) {}  // NOLINT

  static constexpr Quantity FromSi(const T& si) {
    Quantity q;
    q.si_ = si;
    return q;
  }

  // The bare number in SI units: for solvers and SIMD only; anywhere else use in().
  constexpr const T& si() const { return si_; }
  constexpr T in(const Unit<D>& unit) const { return si_ / unit.si; }

  constexpr Quantity operator-() const { return FromSi(-si_); }
  constexpr Quantity& operator+=(const Quantity& o) {
    si_ += o.si_;
    return *this;
  }
  constexpr Quantity& operator-=(const Quantity& o) {
    si_ -= o.si_;
    return *this;
  }

 private:
  T si_;
};

namespace internal {
template <class T>
struct IsQuantity : std::false_type {};
template <class D, class T>
struct IsQuantity<Quantity<D, T>> : std::true_type {};

// A quantity, or the bare scalar where the dimensions cancelled.
template <class D, class T>
constexpr auto Make(const T& si) {
  if constexpr (std::is_same_v<D, Dimensionless>) {
    return si;
  } else {
    return Quantity<D, T>::FromSi(si);
  }
}
template <class A, class B>
using Sum = std::decay_t<decltype(std::declval<A>() + std::declval<B>())>;
}  // namespace internal

template <class D, class A, class B>
constexpr auto operator+(const Quantity<D, A>& a, const Quantity<D, B>& b) {
  return Quantity<D, internal::Sum<A, B>>::FromSi(a.si() + b.si());
}
template <class D, class A, class B>
constexpr auto operator-(const Quantity<D, A>& a, const Quantity<D, B>& b) {
  return Quantity<D, internal::Sum<A, B>>::FromSi(a.si() - b.si());
}
template <class D1, class A, class D2, class B>
constexpr auto operator*(const Quantity<D1, A>& a, const Quantity<D2, B>& b) {
  return internal::Make<DimensionProduct<D1, D2>, internal::Sum<A, B>>(a.si() * b.si());
}
template <class D1, class A, class D2, class B>
constexpr auto operator/(const Quantity<D1, A>& a, const Quantity<D2, B>& b) {
  return internal::Make<DimensionQuotient<D1, D2>, internal::Sum<A, B>>(a.si() / b.si());
}

template <class D, class A, class S, class = std::enable_if_t<!internal::IsQuantity<S>::value>>
constexpr auto operator*(const Quantity<D, A>& a, const S& s) {
  return Quantity<D, std::decay_t<decltype(a.si() * s)>>::FromSi(a.si() * s);
}
template <class D, class A, class S, class = std::enable_if_t<!internal::IsQuantity<S>::value>>
constexpr auto operator*(const S& s, const Quantity<D, A>& a) {
  return a * s;
}
template <class D, class A, class S, class = std::enable_if_t<!internal::IsQuantity<S>::value>>
constexpr auto operator/(const Quantity<D, A>& a, const S& s) {
  return Quantity<D, std::decay_t<decltype(a.si() / s)>>::FromSi(a.si() / s);
}
template <class D, class A, class S, class = std::enable_if_t<!internal::IsQuantity<S>::value>>
constexpr auto operator/(const S& s, const Quantity<D, A>& a) {
  return Quantity<DimensionQuotient<Dimensionless, D>, std::decay_t<decltype(s / a.si())>>::FromSi(
      s / a.si());
}

template <class D, class A, class B>
constexpr bool operator<(const Quantity<D, A>& a, const Quantity<D, B>& b) {
  return a.si() < b.si();
}
template <class D, class A, class B>
constexpr bool operator>(const Quantity<D, A>& a, const Quantity<D, B>& b) {
  return b < a;
}
template <class D, class A, class B>
constexpr bool operator<=(const Quantity<D, A>& a, const Quantity<D, B>& b) {
  return !(b < a);
}
template <class D, class A, class B>
constexpr bool operator>=(const Quantity<D, A>& a, const Quantity<D, B>& b) {
  return !(a < b);
}
template <class D, class A, class B>
constexpr bool operator==(const Quantity<D, A>& a, const Quantity<D, B>& b) {
  return a.si() == b.si();
}

// The larger and the smaller of two quantities of one dimension, whatever their scalars.
template <class D, class A, class B>
constexpr auto Max(const Quantity<D, A>& a, const Quantity<D, B>& b) {
  using Q = Quantity<D, internal::Sum<A, B>>;
  return a < b ? Q(b) : Q(a);
}
template <class D, class A, class B>
constexpr auto Min(const Quantity<D, A>& a, const Quantity<D, B>& b) {
  using Q = Quantity<D, internal::Sum<A, B>>;
  return b < a ? Q(b) : Q(a);
}

// ---- The dimensions in use.

using TimeDimension = Dimension<1, 0, 0, 0>;
using ByteDimension = Dimension<0, 1, 0, 0>;
using FlopDimension = Dimension<0, 0, 1, 0>;
using SampleDimension = Dimension<0, 0, 0, 1>;
using ByteRateDimension = DimensionQuotient<ByteDimension, TimeDimension>;
using FlopRateDimension = DimensionQuotient<FlopDimension, TimeDimension>;
using SampleRateDimension = DimensionQuotient<SampleDimension, TimeDimension>;
using RateDimension = DimensionQuotient<Dimensionless, TimeDimension>;

template <class T = double>
using Duration = Quantity<TimeDimension, T>;
template <class T = double>
using DataSize = Quantity<ByteDimension, T>;
template <class T = double>
using DataRate = Quantity<ByteRateDimension, T>;
template <class T = double>
using Work = Quantity<FlopDimension, T>;
template <class T = double>
using WorkRate = Quantity<FlopRateDimension, T>;
template <class T = double>
using SampleCount = Quantity<SampleDimension, T>;
template <class T = double>
using SampleRate = Quantity<SampleRateDimension, T>;
template <class T = double>
using DurationPerSample = Quantity<DimensionQuotient<TimeDimension, SampleDimension>, T>;
template <class T = double>
using DurationPerByte = Quantity<DimensionQuotient<TimeDimension, ByteDimension>, T>;

// ---- Their units. GB is 10^9 bytes, GiB is 2^30 bytes; bits appear in input and output only.

inline constexpr Unit<TimeDimension> kSeconds{1.0, "s"};
inline constexpr Unit<TimeDimension> kMilliseconds{1e-3, "ms"};
inline constexpr Unit<TimeDimension> kMicroseconds{1e-6, "us"};
inline constexpr Unit<TimeDimension> kMinutes{60.0, "min"};
inline constexpr Unit<TimeDimension> kHours{3600.0, "h"};
inline constexpr Unit<ByteDimension> kBytes{1.0, "B"};
inline constexpr Unit<ByteDimension> kMegabytes{1e6, "MB"};
inline constexpr Unit<ByteDimension> kGigabytes{1e9, "GB"};
inline constexpr Unit<ByteDimension> kMebibytes{1048576.0, "MiB"};
inline constexpr Unit<ByteDimension> kGibibytes{1073741824.0, "GiB"};
inline constexpr Unit<ByteRateDimension> kBytesPerSecond{1.0, "B/s"};
inline constexpr Unit<ByteRateDimension> kGigabytesPerSecond{1e9, "GB/s"};
inline constexpr Unit<ByteRateDimension> kMegabitsPerSecond{1e6 / 8, "Mbit/s"};
inline constexpr Unit<ByteRateDimension> kGigabitsPerSecond{1e9 / 8, "Gbit/s"};
inline constexpr Unit<FlopDimension> kGigaflop{1e9, "GFLOP"};
inline constexpr Unit<FlopRateDimension> kTeraflopPerSecond{1e12, "TFLOP/s"};
inline constexpr Unit<SampleDimension> kSamples{1.0, "samples"};
inline constexpr Unit<SampleRateDimension> kSamplesPerSecond{1.0, "samples/s"};

namespace internal {
// Whole numbers become doubles: 8 us is no whole number of seconds.
template <class T>
using ScalarOf = std::conditional_t<std::is_integral_v<T>, double, T>;

template <class D, class T>
constexpr auto In(const T& value, const Unit<D>& unit) {
  using Scalar = ScalarOf<T>;
  return Quantity<D, Scalar>::FromSi(static_cast<Scalar>(value) * unit.si);
}
}  // namespace internal

template <class T>
constexpr auto Seconds(const T& v) {
  return internal::In(v, kSeconds);
}
template <class T>
constexpr auto Milliseconds(const T& v) {
  return internal::In(v, kMilliseconds);
}
template <class T>
constexpr auto Microseconds(const T& v) {
  return internal::In(v, kMicroseconds);
}
template <class T>
constexpr auto Bytes(const T& v) {
  return internal::In(v, kBytes);
}
template <class T>
constexpr auto Megabytes(const T& v) {
  return internal::In(v, kMegabytes);
}
template <class T>
constexpr auto Gigabytes(const T& v) {
  return internal::In(v, kGigabytes);
}
template <class T>
constexpr auto Mebibytes(const T& v) {
  return internal::In(v, kMebibytes);
}
template <class T>
constexpr auto Gibibytes(const T& v) {
  return internal::In(v, kGibibytes);
}
template <class T>
constexpr auto BytesPerSecond(const T& v) {
  return internal::In(v, kBytesPerSecond);
}
template <class T>
constexpr auto GigabytesPerSecond(const T& v) {
  return internal::In(v, kGigabytesPerSecond);
}
template <class T>
constexpr auto MegabitsPerSecond(const T& v) {
  return internal::In(v, kMegabitsPerSecond);
}
template <class T>
constexpr auto GigabitsPerSecond(const T& v) {
  return internal::In(v, kGigabitsPerSecond);
}
template <class T>
constexpr auto Flop(const T& v) {
  return Quantity<FlopDimension, internal::ScalarOf<T>>::FromSi(
      static_cast<internal::ScalarOf<T>>(v));
}
template <class T>
constexpr auto TeraflopPerSecond(const T& v) {
  return internal::In(v, kTeraflopPerSecond);
}
template <class T>
constexpr auto Samples(const T& v) {
  return internal::In(v, kSamples);
}

}  // namespace stepcast

#endif  // STEPCAST_DATA_UNITS_QUANTITY_H_
