#include "model/compute/device_sheet.h"

namespace stepcast {
namespace {

// A vector unit does two 16-bit operations in the place of one of 32 bits; more is another unit.
constexpr double kMostOfVectors = 2.5;

}  // namespace

std::optional<WorkRate<>> PeakOf(const Device& device, Precision precision) {
  switch (precision) {
    case Precision::kFp32:
      return device.fp32;
    case Precision::kTf32:
      return device.tf32;
    case Precision::kFp16:
      return device.fp16;
    case Precision::kBf16:
      return device.bf16;
    case Precision::kFp8:
      return device.fp8;
  }
  return std::nullopt;
}

std::optional<DeviceSheet> SheetOf(const Device& device, Precision precision) {
  if (!device.fp32 || !device.memory_bandwidth) return std::nullopt;
  DeviceSheet sheet;
  const bool is_narrow = precision == Precision::kFp8;
  const std::optional<WorkRate<>> peak = PeakOf(device, is_narrow ? Precision::kBf16 : precision);
  sheet.flop_per_s = peak.value_or(*device.fp32).si();
  sheet.bytes_per_s = device.memory_bandwidth->si();
  sheet.vector_flop_per_s = device.fp32->si();
  if (HasSixteenBits(precision)) sheet.element_bytes = 2;
  if (is_narrow && device.fp8) sheet.narrow_flop_per_s = device.fp8->si();
  sheet.matrix_units = precision != Precision::kFp32 && peak &&
                       (device.tf32 || *peak / *device.fp32 > kMostOfVectors);
  if (sheet.matrix_units && precision == Precision::kTf32) {
    sheet.ordinary_flop_per_s = device.fp32->si();
  }
  sheet.multiprocessors = device.multiprocessors.value_or(0);
  if (device.last_cache) sheet.cache_bytes = device.last_cache->si();
  sheet.watts = device.power_w.value_or(0);
  sheet.process_nm = device.process_nm.value_or(0);
  return sheet;
}

}  // namespace stepcast
