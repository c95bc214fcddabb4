#include "gpu/self_test.h"

#include <bit>
#include <cmath>
#include <limits>
#include <vector>

#include "base/rng.h"
#include "gpu/device_copies.h"
#include "quant/activations.h"
#include "quant/panel.h"
#include "quant/panel_reference.h"
#include "quant/random_rows.h"

namespace troupe {
namespace {

// More than one panel, more rows of x than a group of items has, more columns than it has at a
// time.
constexpr std::uint32_t kTestRows = 19, kTestCols = 768, kTestTokens = 9;

bool SameNumber(float a, float b) {
  return std::bit_cast<std::uint32_t>(a) == std::bit_cast<std::uint32_t>(b) ||
         (std::isnan(a) && std::isnan(b));
}

Status Refused(const GpuDevice& device, std::string_view what, std::size_t place, float got,
               float right) {
  return Error(Code::kFailedPrecondition,
               "{} is not used: {} differs from the processor's (number {}: {:a}, not {:a})",
               device.info().name, what, place, got, right);
}

Status Compare(const GpuDevice& device, std::string_view what, std::span<const float> got,
               std::span<const float> right) {
  for (std::size_t i = 0; i < right.size(); ++i) {
    if (!SameNumber(got[i], right[i])) return Refused(device, what, i, got[i], right[i]);
  }
  return OkStatus();
}

// Rows of floats with what is hard to convert to 8 bits in the first of them.
std::vector<float> TestValues(Rng& rng) {
  std::vector<float> values(kTestTokens * kTestCols);
  for (float& value : values) value = static_cast<float>(rng.Normal());
  const auto group = [&](std::size_t g) { return values.data() + g * kGroupCols; };
  for (std::size_t i = 0; i < kGroupCols; ++i) {
    group(0)[i] = static_cast<float>(i) - 15.5f;  // with 127: halves between integers
    group(1)[i] = 0.0f;
    group(2)[i] *= 0x1p-105f;  // too small to have codes
    group(3)[i] *= 0x1p-96f;
    group(4)[i] *= 0x1p+120f;
  }
  group(0)[7] = 127.0f;
  return values;
}

// On both sides.
struct TestInput {
  std::vector<float> values;
  std::vector<std::byte> codes;
  Activations x;
  std::unique_ptr<GpuBuffer> device_values, device_codes;

  GpuRows rows() const { return {device_values.get(), device_codes.get(), kTestTokens, kTestCols}; }
};

Status TestQuantize(GpuKernels& kernels, TestInput& input) {
  GpuDevice& device = kernels.device();
  TROUPE_ASSIGN_OR_RETURN(const GpuEventPtr done, kernels.Quantize(input.rows(), {}));
  TROUPE_RETURN_IF_ERROR(done->Wait());
  std::vector<std::byte> got(input.codes.size());
  TROUPE_RETURN_IF_ERROR(ReadNow(device, *input.device_codes, got));
  if (got == input.codes) return OkStatus();
  return Error(Code::kFailedPrecondition,
               "{} is not used: the 8-bit form of activations differs from the processor's",
               device.info().name);
}

Status TestGates(GpuKernels& kernels, Rng& rng) {
  constexpr float kInfinity = std::numeric_limits<float>::infinity();
  std::vector<float> gates = {0.0f,
                              -0.0f,
                              1e-30f,
                              -1e-40f,
                              7.0f,
                              -7.5f,
                              86.9f,
                              87.5f,
                              88.0f,
                              88.5f,
                              200.0f,
                              -86.9f,
                              -87.0f,
                              -87.5f,
                              -88.0f,
                              -200.0f,
                              kInfinity,
                              -kInfinity,
                              std::numeric_limits<float>::quiet_NaN()};
  while (gates.size() < 512) gates.push_back(static_cast<float>(8 * rng.Normal()));
  std::vector<float> ups(gates.size());
  for (float& up : ups) up = static_cast<float>(5 * rng.Normal());
  GpuDevice& device = kernels.device();
  TROUPE_ASSIGN_OR_RETURN(const auto device_ups, BufferWith(device, std::as_bytes(std::span(ups))));
  for (const GateForm form : kGateForms) {
    TROUPE_ASSIGN_OR_RETURN(const auto device_gates,
                            BufferWith(device, std::as_bytes(std::span(gates))));
    const auto count = static_cast<std::uint32_t>(gates.size());
    TROUPE_ASSIGN_OR_RETURN(const GpuEventPtr done,
                            kernels.Combine(form, *device_gates, *device_ups, count, {}));
    TROUPE_RETURN_IF_ERROR(done->Wait());
    std::vector<float> got(gates.size()), right(gates.size());
    TROUPE_RETURN_IF_ERROR(ReadNow(device, *device_gates, std::as_writable_bytes(std::span(got))));
    for (std::size_t i = 0; i < gates.size(); ++i) right[i] = GateReference(form, gates[i], ups[i]);
    TROUPE_RETURN_IF_ERROR(Compare(device, "a gate's form", got, right));
  }
  return OkStatus();
}

Status TestProducts(GpuKernels& kernels, TensorType type, const TestInput& input, Rng& rng) {
  GpuDevice& device = kernels.device();
  const std::vector<std::byte> rows = RandomRows(type, kTestRows, kTestCols, rng);
  std::vector<std::byte> panels(PanelBytes(type, kTestRows, kTestCols));
  PackPanels(type, kTestRows, kTestCols, rows, panels);
  TROUPE_ASSIGN_OR_RETURN(const auto weights, BufferWith(device, panels));
  std::vector<float> got(kTestRows * kTestTokens), right(got.size());
  TROUPE_ASSIGN_OR_RETURN(const auto out, device.Allocate(Bytes(got.size() * sizeof(float))));
  const GpuMatrix matrix{type, kTestRows, kTestCols, weights.get(), 0};
  TROUPE_ASSIGN_OR_RETURN(const GpuEventPtr done, kernels.Multiply(matrix, {}, input.rows(),
                                                                   nullptr, kTestTokens, *out, {}));
  TROUPE_RETURN_IF_ERROR(done->Wait());
  TROUPE_RETURN_IF_ERROR(ReadNow(device, *out, std::as_writable_bytes(std::span(got))));
  const std::size_t row_bytes = rows.size() / kTestRows;
  for (std::size_t i = 0; i < right.size(); ++i) {
    const auto row = std::span(rows).subspan(i % kTestRows * row_bytes, row_bytes);
    right[i] = PanelDotReference(type, row, input.x, i / kTestRows);
  }
  return Compare(device, fmt::format("a product with {} weights", Name(type)), got, right);
}

}  // namespace

Status TestGpu(GpuKernels& kernels, std::span<const TensorType> types) {
  Rng rng(20261128);
  GpuDevice& device = kernels.device();
  TestInput input{.values = TestValues(rng)};
  input.codes.resize(ActivationBytes(kTestTokens, kTestCols));
  input.x = MakeActivations(input.values.data(), kTestCols, kTestTokens, kTestCols, input.codes);
  for (std::size_t token = 0; token < kTestTokens; ++token) {
    QuantizeActivationsReference(input.x, token);
  }
  TROUPE_ASSIGN_OR_RETURN(input.device_values,
                          BufferWith(device, std::as_bytes(std::span(input.values))));
  TROUPE_ASSIGN_OR_RETURN(input.device_codes, device.Allocate(Bytes(input.codes.size())));
  TROUPE_RETURN_IF_ERROR(TestQuantize(kernels, input));
  TROUPE_RETURN_IF_ERROR(TestGates(kernels, rng));
  for (const TensorType type : types) {
    TROUPE_RETURN_IF_ERROR(TestProducts(kernels, type, input, rng));
  }
  return OkStatus();
}

}  // namespace troupe
