// How a feed-forward's two first products become one number, element by element: the scalar truth
// of the kernels that do it, and their constants. Every operation rounds to float once; nothing is
// fused.
#pragma once

#include <array>

#include "quant/exp_reference.h"

namespace troupe {

enum class GateForm {
  kSilu,     // silu(gate) * up
  kClamped,  // gpt-oss: the gate is cut off above, up on both sides; swish of slope 1.702, up plus
             // 1
  kGelu,     // gemma4: gelu(gate) * up, by the usual tanh, which is a sigmoid of twice its argument
  // Of one product alone; there is no up.
  kRelu,         // switch: relu(gate)
  kSquaredRelu,  // nemotron_h: relu(gate)^2
};

inline constexpr std::array kGateForms = {GateForm::kSilu, GateForm::kClamped, GateForm::kGelu,
                                          GateForm::kRelu, GateForm::kSquaredRelu};

// Whether the form takes the second product.
inline constexpr bool TakesUp(GateForm form) {
  return form != GateForm::kRelu && form != GateForm::kSquaredRelu;
}

inline constexpr float kGateLimit = 7.0f;
inline constexpr float kGateSlope = 1.702f;
inline constexpr float kGeluSlope = 1.5957691216057308f;  // 2 sqrt(2 / pi)
inline constexpr float kGeluCube = 0.044715f;

inline float GateReference(GateForm form, float gate, float up) {
  if (form == GateForm::kSilu) return gate * SigmoidReference(gate) * up;
  if (form == GateForm::kGelu) {
    const float inner = kGeluSlope * (gate * (kGeluCube * (gate * gate) + 1.0f));
    return gate * SigmoidReference(inner) * up;
  }
  if (!TakesUp(form)) {
    const float x = gate < 0.0f ? 0.0f : gate;  // NaN stays NaN
    return form == GateForm::kRelu ? x : x * x;
  }
  const float x = gate > kGateLimit ? kGateLimit : gate;  // NaN stays NaN
  float y = up > kGateLimit ? kGateLimit : up;
  y = y < -kGateLimit ? -kGateLimit : y;
  return x * SigmoidReference(kGateSlope * x) * (y + 1.0f);
}

}  // namespace troupe
