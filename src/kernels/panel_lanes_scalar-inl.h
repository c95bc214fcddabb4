// The operations of panel_lanes-inl.h on arrays of 16 rows, for the target without vectors. The
// compiler makes of the loops what the machine's baseline has. Included by panel_lanes-inl.h alone.
HWY_BEFORE_NAMESPACE();
namespace troupe::HWY_NAMESPACE {

inline constexpr std::size_t kLanes = kPanelRows;

struct F {
  float v[kLanes];
};
struct I {
  std::int32_t v[kLanes];
};
struct C {
  std::uint8_t v[kWordsBytes];
};

template <class V, class Function>
HWY_INLINE V Generate(Function f) {
  V result;
  for (std::size_t i = 0; i < std::size(result.v); ++i) result.v[i] = f(i);
  return result;
}

template <class V>
HWY_INLINE V Read(const void* p) {
  V result;
  std::memcpy(result.v, p, sizeof result.v);
  return result;
}

inline F SetF(float v) {
  return Generate<F>([v](std::size_t) { return v; });
}
inline F ZeroF() { return SetF(0.0f); }
inline F LoadF(const float* p) { return Read<F>(p); }
inline F LoadF(const std::byte* p) { return Read<F>(p); }
inline void StoreF(const F& v, float* p) { std::memcpy(p, v.v, sizeof v.v); }
inline F Multiply(const F& a, const F& b) {
  return Generate<F>([&](std::size_t i) { return a.v[i] * b.v[i]; });
}
inline F Fma(const F& a, const F& b, const F& c) {
  return Generate<F>([&](std::size_t i) { return std::fma(a.v[i], b.v[i], c.v[i]); });
}
inline F AddF(const F& a, const F& b) {
  return Generate<F>([&](std::size_t i) { return a.v[i] + b.v[i]; });
}
inline F SiluTimes(const F& gate, const F& up) {
  return Generate<F>(
      [&](std::size_t i) { return GateReference(GateForm::kSilu, gate.v[i], up.v[i]); });
}
inline F ClampedTimes(const F& gate, const F& up) {
  return Generate<F>(
      [&](std::size_t i) { return GateReference(GateForm::kClamped, gate.v[i], up.v[i]); });
}
inline F GeluTimes(const F& gate, const F& up) {
  return Generate<F>(
      [&](std::size_t i) { return GateReference(GateForm::kGelu, gate.v[i], up.v[i]); });
}
inline F Relu(const F& gate) {
  return Generate<F>(
      [&](std::size_t i) { return GateReference(GateForm::kRelu, gate.v[i], 0.0f); });
}
inline F SquaredRelu(const F& gate) {
  return Generate<F>(
      [&](std::size_t i) { return GateReference(GateForm::kSquaredRelu, gate.v[i], 0.0f); });
}

inline I SetI(std::int32_t v) {
  return Generate<I>([v](std::size_t) { return v; });
}
inline F ToFloat(const I& v) {
  return Generate<F>([&](std::size_t i) { return static_cast<float>(v.v[i]); });
}

template <float (*kToFloat)(std::uint16_t)>
HWY_INLINE F LoadWords(const std::byte* p) {
  std::uint16_t words[kLanes];
  std::memcpy(words, p, sizeof words);
  return Generate<F>([&](std::size_t i) { return kToFloat(words[i]); });
}
inline F LoadHalves(const std::byte* p) { return LoadWords<HalfToFloat>(p); }
inline F LoadBf16(const std::byte* p) { return LoadWords<Bf16ToFloat>(p); }
inline F LoadBytes(const std::int8_t* p) {
  return Generate<F>([p](std::size_t i) { return static_cast<float>(p[i]); });
}

inline F LoadHalvedExponents(const std::byte* p) {
  return Generate<F>(
      [p](std::size_t i) { return HalvedExponentToFloat(static_cast<std::uint8_t>(p[i])); });
}

inline F LoadHalvedE4M3(const std::byte* p) {
  return Generate<F>(
      [p](std::size_t i) { return HalvedE4M3ToFloat(static_cast<std::uint8_t>(p[i])); });
}

inline I LoadI(const std::byte* p) { return Read<I>(p); }
inline I LoadBytesI(const std::byte* p) {
  return Generate<I>([p](std::size_t i) { return std::to_integer<std::int32_t>(p[i]); });
}
inline C CodesOf(const I& v) { return Read<C>(v.v); }
inline I AndI(const I& a, const I& b) {
  return Generate<I>([&](std::size_t i) { return a.v[i] & b.v[i]; });
}
inline I OrI(const I& a, const I& b) {
  return Generate<I>([&](std::size_t i) { return a.v[i] | b.v[i]; });
}
inline I XorI(const I& a, const I& b) {
  return Generate<I>([&](std::size_t i) { return a.v[i] ^ b.v[i]; });
}
template <int kBits>
inline I ShiftI(const I& v) {
  return Generate<I>([&](std::size_t i) {
    if constexpr (kBits < 0) {
      return v.v[i] >> -kBits;
    } else {
      return static_cast<std::int32_t>(static_cast<std::uint32_t>(v.v[i]) << kBits);
    }
  });
}
inline I ShiftDownI(const I& v, int bits) {
  return Generate<I>([&](std::size_t i) { return v.v[i] >> bits; });
}
inline I LookUpI(const std::int32_t* table, const I& places) {
  return Generate<I>([&](std::size_t i) { return table[places.v[i]]; });
}

inline C LoadC(const void* p) { return Read<C>(p); }
inline void StoreC(const C& v, void* p) { std::memcpy(p, v.v, sizeof v.v); }
inline C SubtractC(const C& v, std::uint8_t n) {
  return Generate<C>([&](std::size_t i) { return static_cast<std::uint8_t>(v.v[i] - n); });
}
inline C OrC(const C& a, const C& b) {
  return Generate<C>([&](std::size_t i) { return static_cast<std::uint8_t>(a.v[i] | b.v[i]); });
}
inline C XorC(const C& v, std::uint8_t n) {
  return Generate<C>([&](std::size_t i) { return static_cast<std::uint8_t>(v.v[i] ^ n); });
}

inline C LookUpC(const std::uint8_t (&table)[16], const C& codes) {
  return Generate<C>([&](std::size_t i) { return table[codes.v[i]]; });
}

template <int kBits, int kFrom, int kTo>
inline C Field(const C& v) {
  return Generate<C>([&](std::size_t i) {
    return static_cast<std::uint8_t>(((v.v[i] >> kFrom) & ((1 << kBits) - 1)) << kTo);
  });
}

}  // namespace troupe::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();
