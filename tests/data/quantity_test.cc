#include "data/units/quantity.h"

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <cmath>
#include <concepts>
#include <cstdint>
#include <limits>
#include <string>
#include <type_traits>

#include "data/units/shortest.h"

namespace stepcast {
namespace {

// ---- What must not compile: each is an expression, asked whether it exists.

template <class A, class B>
concept CanAdd = requires(A a, B b) {
  a + b;
};
template <class A, class B>
concept CanSubtract = requires(A a, B b) {
  a - b;
};
template <class A, class B>
concept CanAccumulate = requires(A a, B b) {
  a += b;
};
template <class A, class B>
concept CanCompare = requires(A a, B b) {
  a < b;
};
template <class A, class B>
concept CanEquate = requires(A a, B b) {
  a == b;
};
template <class A, class B>
concept CanTakeLarger = requires(A a, B b) {
  Max(a, b);
};
template <class Q, class U>
concept CanReadIn = requires(Q q, U u) {
  q.in(u);
};

static_assert(CanAdd<Duration<>, Duration<>>);
static_assert(!CanAdd<Duration<>, DataSize<>>);
static_assert(!CanAdd<Duration<>, double>);
static_assert(!CanAdd<double, Duration<>>);
static_assert(!CanAdd<DataRate<>, DataSize<>>);
static_assert(!CanAdd<SampleCount<>, DataSize<>>);
static_assert(CanSubtract<DataRate<>, DataRate<>>);
static_assert(!CanSubtract<WorkRate<>, Work<>>);
static_assert(CanAccumulate<Work<>, Work<>>);
static_assert(!CanAccumulate<Work<>, DataSize<>>);
static_assert(!CanAccumulate<Work<>, double>);
static_assert(CanCompare<DataSize<>, DataSize<>>);
static_assert(!CanCompare<DataSize<>, SampleCount<>>);
static_assert(!CanCompare<DataSize<>, double>);
static_assert(!CanEquate<Duration<>, SampleRate<>>);
static_assert(!CanTakeLarger<Duration<>, DataSize<>>);
static_assert(CanReadIn<Duration<>, Unit<TimeDimension>>);
static_assert(!CanReadIn<Duration<>, Unit<ByteDimension>>);
static_assert(!CanReadIn<DataRate<>, Unit<ByteDimension>>);

// A number is no quantity and a quantity is no number.
static_assert(!std::is_convertible_v<double, Duration<>>);
static_assert(!std::is_constructible_v<Duration<>, double>);
static_assert(!std::is_convertible_v<Duration<>, double>);
static_assert(!std::is_convertible_v<DataSize<>, Duration<>>);
static_assert(!std::is_assignable_v<DataRate<>&, WorkRate<>>);

// ---- What the algebra gives.

static_assert(std::same_as<decltype(DataSize<>() / DataRate<>()), Duration<>>);
static_assert(std::same_as<decltype(DataSize<>() / Duration<>()), DataRate<>>);
static_assert(std::same_as<decltype(DataRate<>() * Duration<>()), DataSize<>>);
static_assert(std::same_as<decltype(Work<>() / WorkRate<>()), Duration<>>);
static_assert(std::same_as<decltype(SampleCount<>() / Duration<>()), SampleRate<>>);
static_assert(std::same_as<decltype(Duration<>() / SampleCount<>()), DurationPerSample<>>);
static_assert(std::same_as<decltype(DurationPerSample<>() * SampleCount<>()), Duration<>>);
static_assert(std::same_as<decltype(1.0 / DurationPerSample<>()), SampleRate<>>);
static_assert(std::same_as<decltype(2.0 * Duration<>()), Duration<>>);
static_assert(std::same_as<decltype(Duration<>() * 2), Duration<>>);
static_assert(std::same_as<decltype(-Duration<>()), Duration<>>);
// Where the dimensions cancel, a plain number is left.
static_assert(std::same_as<decltype(Duration<>() / Duration<>()), double>);
static_assert(std::same_as<decltype(SampleRate<>() * Duration<>() / SampleCount<>()), double>);

// It costs nothing, and works at compile time.
static_assert(sizeof(Duration<>) == sizeof(double));
static_assert(std::is_trivially_copyable_v<DataRate<>>);
static_assert(Duration<>() == Seconds(0.0));
static_assert(Mebibytes(25.0).si() == 25.0 * 1024 * 1024);

TEST(Quantity, TransferTimeIsSizeOverBandwidth) {
  const Duration<> time = Mebibytes(25.0) / GigabitsPerSecond(10.0);
  EXPECT_DOUBLE_EQ(time.in(kMilliseconds), 25.0 * 1048576.0 * 8.0 / 10e9 * 1e3);
}

TEST(Quantity, UnitsAreWhatTheySay) {
  EXPECT_DOUBLE_EQ(Seconds(1.5).in(kMilliseconds), 1500.0);
  EXPECT_DOUBLE_EQ(Milliseconds(1.5).in(kMicroseconds), 1500.0);
  EXPECT_DOUBLE_EQ(Microseconds(8.0).in(kSeconds), 8e-6);
  EXPECT_DOUBLE_EQ(Seconds(90.0).in(kMinutes), 1.5);
  EXPECT_DOUBLE_EQ(Seconds(5400.0).in(kHours), 1.5);
  EXPECT_DOUBLE_EQ(Megabytes(1.0).in(kBytes), 1e6);
  EXPECT_DOUBLE_EQ(Gigabytes(1.0).in(kBytes), 1e9);
  EXPECT_DOUBLE_EQ(Gibibytes(1.0).in(kMebibytes), 1024.0);
  EXPECT_DOUBLE_EQ(Mebibytes(1.0).in(kBytes), 1048576.0);
  EXPECT_DOUBLE_EQ(GigabitsPerSecond(8.0).in(kGigabytesPerSecond), 1.0);
  EXPECT_DOUBLE_EQ(MegabitsPerSecond(8.0).in(kBytesPerSecond), 1e6);
  EXPECT_DOUBLE_EQ(GigabytesPerSecond(1.0).in(kMegabitsPerSecond), 8000.0);
  EXPECT_DOUBLE_EQ(TeraflopPerSecond(1.0).si(), 1e12);
  EXPECT_DOUBLE_EQ(Flop(3e9).in(kGigaflop), 3.0);
  EXPECT_DOUBLE_EQ(Samples(32.0).in(kSamples), 32.0);
}

// Microseconds(8) used to be zero: 8e-6 as a whole number of seconds.
TEST(Quantity, WholeNumbersAreNotTruncated) {
  EXPECT_DOUBLE_EQ(Microseconds(8).si(), 8e-6);
  EXPECT_DOUBLE_EQ((Flop(1) / Seconds(3)).si(), 1.0 / 3.0);
  EXPECT_DOUBLE_EQ((Bytes(std::int64_t{1} << 40) / Seconds(1 << 20)).si(), 1048576.0);
  static_assert(std::same_as<decltype(Samples(32)), SampleCount<double>>);
}

TEST(Quantity, MixedScalarsKeepTheWider) {
  const Quantity<TimeDimension, float> narrow = Seconds(0.5f);
  const auto sum = narrow + Seconds(0.25);
  static_assert(std::same_as<decltype(sum), const Duration<double>>);
  EXPECT_EQ(sum, Seconds(0.75));
  const Duration<double> widened = narrow;
  EXPECT_EQ(widened, Seconds(0.5));
}

TEST(Quantity, LargerAndSmaller) {
  EXPECT_EQ(Max(Seconds(1.0), Milliseconds(2.0)), Seconds(1.0));
  EXPECT_EQ(Max(Milliseconds(2.0), Seconds(1.0)), Seconds(1.0));
  EXPECT_EQ(Min(Seconds(1.0), Milliseconds(2.0)), Milliseconds(2.0));
  EXPECT_EQ(Min(Milliseconds(2.0), Seconds(1.0)), Milliseconds(2.0));
}

TEST(Quantity, ComparisonsAgreeWithEachOther) {
  const Duration<> less = Milliseconds(1.0);
  const Duration<> more = Seconds(1.0);
  EXPECT_TRUE(less < more && less <= more && more > less && more >= less);
  EXPECT_FALSE(more < less || more <= less || less > more || less >= more);
  EXPECT_TRUE(less <= less && less >= less && less == less);
  EXPECT_FALSE(less < less || less > less);
  // Nothing is smaller or larger than what is not a number.
  const Duration<> nan = Seconds(std::nan(""));
  EXPECT_FALSE(nan < more || more < nan || nan == nan);
}

// A finite magnitude that any unit can scale without overflow.
double Magnitude() {
  const int mantissa = *rc::gen::inRange(-999'999, 1'000'000);
  const int exponent = *rc::gen::inRange(-30, 31);
  return mantissa * std::pow(10.0, exponent);
}

template <class D>
void ExpectRoundTrip(double value, const Unit<D>& unit) {
  const double back = Quantity<D>::FromSi(value * unit.si).in(unit);
  RC_ASSERT(std::abs(back - value) <= 4e-16 * std::abs(value));
}

RC_GTEST_PROP(Quantity, EveryUnitRoundTrips, ()) {
  const double value = Magnitude();
  for (const auto& unit : {kSeconds, kMilliseconds, kMicroseconds, kMinutes, kHours}) {
    ExpectRoundTrip(value, unit);
  }
  for (const auto& unit : {kBytes, kMegabytes, kGigabytes, kMebibytes, kGibibytes}) {
    ExpectRoundTrip(value, unit);
  }
  for (const auto& unit :
       {kBytesPerSecond, kGigabytesPerSecond, kMegabitsPerSecond, kGigabitsPerSecond}) {
    ExpectRoundTrip(value, unit);
  }
  ExpectRoundTrip(value, kGigaflop);
  ExpectRoundTrip(value, kTeraflopPerSecond);
  ExpectRoundTrip(value, kSamples);
  ExpectRoundTrip(value, kSamplesPerSecond);
}

// Arithmetic on quantities is arithmetic on their SI values.
RC_GTEST_PROP(Quantity, ArithmeticIsThatOfTheNumbers, ()) {
  const double a = Magnitude();
  const double b = Magnitude();
  Duration<> sum = Seconds(a);
  sum += Seconds(b);
  RC_ASSERT(sum.si() == a + b);
  sum -= Seconds(b);
  RC_ASSERT(sum.si() == a + b - b);
  RC_ASSERT((Seconds(a) - Seconds(b)).si() == a - b);
  RC_ASSERT((-Seconds(a)).si() == -a);
  RC_ASSERT((BytesPerSecond(a) * Seconds(b)).si() == a * b);
  RC_ASSERT((Seconds(a) * b).si() == a * b);
  RC_ASSERT((b * Seconds(a)).si() == a * b);
  RC_PRE(b != 0);
  RC_ASSERT((Bytes(a) / BytesPerSecond(b)).si() == a / b);
  RC_ASSERT((Seconds(a) / b).si() == a / b);
  RC_ASSERT((a / Seconds(b)).si() == a / b);
  RC_ASSERT((Seconds(a) / Seconds(b)) == a / b);
}

// ---- Numbers as errors quote them.

TEST(ShortestText, ReadsBackAndHasNoNeedlessDigits) {
  const struct {
    double value;
    const char* text;
  } cases[] = {{0, "0"},
               {0.1, "0.1"},
               {-2.5, "-2.5"},
               {440000000, "440000000"},
               {102228128, "102228128"},
               {1.0 / 3, "0.3333333333333333"},
               {0.000123456789012345678, "0.00012345678901234567"},
               {999999999999999, "999999999999999"},
               {1e15, "1e+15"},
               {1e-9, "1e-09"},
               {1e300, "1e+300"},
               {std::numeric_limits<double>::infinity(), "inf"}};
  for (const auto& c : cases) {
    EXPECT_EQ(ShortestText(c.value), c.text);
    EXPECT_EQ(std::stod(ShortestText(c.value)), c.value);
  }
  EXPECT_EQ(ShortestText(std::nan("")), "nan");
}

}  // namespace
}  // namespace stepcast
