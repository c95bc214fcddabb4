// What a device computes of an expert: products with panels (quant/panel.h), the 8-bit form of
// activations and the gate's form. Each number is the sequence of float operations that is written
// in quant/panel_reference.h, quant/activations.h and quant/gate_reference.h, one rounding each, so
// that a device's bytes are the processor's. Nothing here may be reordered, contracted or relaxed.
//
// One program has the kernel under PRODUCT_BLOCKS or PRODUCT_NUMBERS for one type of weights, whose
// constants kernel_source.cc defines before this text; another has those that know no type. The
// other words in capitals are a language's: names_opencl.cl has those of OpenCL C.

#define LANES 16u  // rows of a panel
#define GROUP_COLS 32u

// An ActivationGroup: scale, sum, half_sum[2], then 32 codes, as words.
#define X_WORDS 12u
#define X_SCALE 0u
#define X_SUM 1u
#define X_HALF_SUMS 2u
#define X_CODES 4u

DEVICE float HalfToFloat(ushort h) {
  const uint sign = (uint)(h & 0x8000) << 16;
  const uint exponent = (h >> 10) & 0x1f;
  const uint mantissa = h & 0x3ff;
  if (exponent == 0x1f) return FLOAT_OF(sign | 0x7f800000u | (mantissa << 13));
  if (exponent != 0) return FLOAT_OF(sign | ((exponent + 112u) << 23) | (mantissa << 13));
  return FLOAT_OF(sign | BITS_OF((float)mantissa * 0x1p-24f));
}

#ifdef PRODUCT_BLOCKS

#ifndef DOT4
// The sum of four unsigned codes times four signed activations, where a language lacks a word.
DEVICE int Dot4(uint codes, uint x) {
  return (int)(codes & 255u) * (int)(signed char)(x & 255u) +
         (int)((codes >> 8) & 255u) * (int)(signed char)((x >> 8) & 255u) +
         (int)((codes >> 16) & 255u) * (int)(signed char)((x >> 16) & 255u) +
         (int)(codes >> 24) * (int)(signed char)(x >> 24);
}
#define DOT4(codes, x) Dot4(codes, x)
#endif

#ifdef LEVELS
CONSTANT uchar kLevels[16] = {LEVELS};  // each with OFFSET added, so that it is unsigned
#endif

#ifdef LEVELS
DEVICE uint LevelsOf(uint codes) {
  return (uint)kLevels[codes & 15u] | (uint)kLevels[(codes >> 8) & 15u] << 8 |
         (uint)kLevels[(codes >> 16) & 15u] << 16 | (uint)kLevels[codes >> 24] << 24;
}
#endif

#ifdef BOOK

CONSTANT uint kBook[] = {BOOK};

// Codes and scales as quant/book_codes.h has them. `group` is the first byte of a row in a group of
// a panel, whose bytes of places are LANES apart; `signs` is the row's word of signs.
DEVICE void BookCodes(GLOBAL const uchar* group, uint signs, uint* codes) {
  uint high = 0;
#if HIGH_IN_SIGNS
  high = signs >> 25;
#endif
  for (uint i = 0; i < HIGH_BYTES; ++i) high |= (uint)group[(BOOK_WORDS + i) * LANES] << (8 * i);
  for (uint i = 0; i < BOOK_WORDS; ++i) {
    const uint upper = (high >> (HIGH_STEP * i)) & ((1u << HIGH_BITS) - 1u);
    uint word = kBook[(uint)group[i * LANES] | upper << 8];
#if defined(SCALES_IQ1_S)
    word |= ((high >> 15) & 1u) * 0x44444444u;
#elif defined(SCALES_IQ1_M)
    word |= ((high >> (4 * i + 3)) & 1u) * 0x44444444u;
#endif
#if BOOK_WORDS == 8
    codes[i] = word;
#else
    codes[2 * i] = word & 0x0f0f0f0fu;
    codes[2 * i + 1] = (word >> 4) & 0x0f0f0f0fu;
#endif
  }
#if SEVENS
  const uint last = (signs >> 24) & 0x55u;
  const uint chunks = signs ^ (signs >> 8) ^ (signs >> 16) ^ last;
  signs = (signs & 0xffffffu) | (last | ((chunks ^ (chunks << 1)) & 0xaau)) << 24;
#endif
  for (uint chunk = 0; chunk < 8; ++chunk) {
#if !SHIFT
    codes[chunk] |= ((signs >> chunk) & 0x01010101u) << DIGIT_BITS;
#endif
    codes[chunk] = LevelsOf(codes[chunk]);
  }
}

// The integer scale of a run of columns; `packed` is the first of the row's bytes of scales.
DEVICE int BookScale(GLOBAL const uchar* packed, GLOBAL const uchar* group, uint signs, uint run) {
#if defined(SCALES_IQ1_M)
  const uint two = (uint)packed[run / 4 * 2 * LANES] | (uint)packed[(run / 4 * 2 + 1) * LANES] << 8;
  return (int)((two >> (run % 4 * 3)) & 7u) * 2 + 1;
#elif defined(SCALES_IQ1_S)
  return (int)((group[5 * LANES] >> 4) & 7u) * 2 + 1;
#elif SCALE_BYTES > 0
  return (int)((packed[run / 2 * LANES] >> (run % 2 * 4)) & 15u) * 2 + 1;
#else
  const uint last = signs >> 24;
  return (int)(((last >> 1) & 1u) | ((last >> 2) & 2u) | ((last >> 3) & 4u) | ((last >> 4) & 8u)) *
             2 + 1;
#endif
}

#else

// The four codes of a chunk; `words` are those of one row in a group, LANES apart.
DEVICE uint Chunk(GLOBAL const uint* words, uint chunk) {
#if CODE_BITS == 8
  return words[chunk * LANES];
#elif CODE_BITS >= 4
  uint codes = (words[chunk % 4 * LANES] >> (chunk / 4 * 4)) & 0x0f0f0f0fu;
#if CODE_BITS == 5
  codes |= ((words[4 * LANES] >> chunk) & 0x01010101u) << 4;
#elif CODE_BITS == 6
  codes |= ((words[(4 + chunk / 4) * LANES] >> (chunk % 4 * 2)) & 0x03030303u) << 4;
#endif
#ifdef LEVELS
  codes = LevelsOf(codes);
#endif
  return codes;
#else
  uint codes = (words[chunk / 4 * LANES] >> (chunk % 4 * 2)) & 0x03030303u;
#if CODE_BITS == 3
  codes |= ((words[2 * LANES] >> chunk) & 0x01010101u) << 2;
#endif
  return codes;
#endif
}

#endif  // BOOK

#if defined(SCALES_NVFP4)

// HalvedE4M3ToFloat (base/half.h).
DEVICE float HalvedE4M3(uint bits) {
  const uint magnitude = bits & 127u;
  if (bits == 127u) return 0.0f;
  if (magnitude < 8u) return (float)magnitude * 0x1p-10f;
  return FLOAT_OF((magnitude << 20) + (119u << 23));
}

#elif SCALE_BYTES > 0 && !defined(BOOK)
// The integer scale (and min) of a run of columns. `packed` is the first of one row's bytes, which
// are LANES apart.
#define PACKED(i) ((int)packed[(i) * LANES])
DEVICE int ScaleOfRun(GLOBAL const uchar* packed, uint run) {
#if defined(SCALES_Q2_K)
  return PACKED(run) & 15;
#elif defined(SCALES_Q3_K)
  const int low = (PACKED(run % 8) >> (4 * (run / 8))) & 15;
  const int high = (PACKED(8 + run % 4) >> (2 * (run / 4))) & 3;
  return (low | high << 4) - 32;
#elif defined(SCALES_Q6_K)
  return (int)(signed char)packed[run * LANES];
#elif defined(SCALES_IQ4_XS)
  const int high = (PACKED(run / 4) >> (2 * (run % 4))) & 3;
  const int low = (PACKED(2 + run / 2) >> (4 * (run % 2))) & 15;
  return (low | high << 4) - 32;
#else
  if (run < 4) return PACKED(run) & 63;
  return (PACKED(run + 4) & 15) | (PACKED(run - 4) >> 6) << 4;
#endif
}
#if HAS_MIN
DEVICE int MinOfRun(GLOBAL const uchar* packed, uint run) {
#if defined(SCALES_Q2_K)
  return PACKED(run) >> 4;
#else
  if (run < 4) return PACKED(run + 4) & 63;
  return PACKED(run + 4) >> 4 | (PACKED(run) >> 6) << 4;
#endif
}
#endif
#endif

// out[i][row] = row of the weights times row x_rows[i] of x (row i where there is no such list),
// plus its bias where there is one. A group of items has one panel and TILE rows of x. An item of
// it computes the terms of one weight row for each SLICES-th group of columns. Those of one row of
// x are then added by as many items as a panel has rows, in the order of the columns.
KERNEL ITEMS_ARE(LANES * SLICES)
void Product(GLOBAL const uchar* weights, ulong weights_at, uint rows, uint cols,
             GLOBAL const uint* x, GLOBAL const uint* x_rows, uint x_count,
             GLOBAL const float* bias, ulong bias_at, GLOBAL float* out) {
  LOCAL float terms[TILE][SLICES][LANES];
  const uint lane = ITEM % LANES;
  const uint slice = ITEM / LANES;
  const uint panel = GROUP(0);
  const uint first = GROUP(1) * TILE;
  const uint count = x_count - first < TILE ? x_count - first : TILE;
  const uint groups = cols / GROUP_COLS;
  const ulong panel_bytes = (ulong)(groups / RECORD_GROUPS) * RECORD_BYTES;
  GLOBAL const uchar* records = weights + weights_at + panel * panel_bytes;
  // The row of x whose terms this item adds.
  const uint mine = slice < count ? first + slice : first;
  GLOBAL const uint* my_x = x + (ulong)(x_rows ? x_rows[mine] : mine) * groups * X_WORDS;
  float sum = 0.0f;

  for (uint begin = 0; begin < groups; begin += SLICES) {
    const uint group = begin + slice;
    if (group < groups) {
      const uint in_record = group % RECORD_GROUPS;
      GLOBAL const uchar* record = records + (ulong)(group / RECORD_GROUPS) * RECORD_BYTES;
      GLOBAL const uchar* codes_at = record + CODES_AT + in_record * GROUP_BYTES;
      uint codes[8];
#ifdef BOOK
#if SHIFT
      const uint signs = 0;
#else
      const uint signs = ((GLOBAL const uint*)(codes_at + SIGNS_AT))[lane];
#endif
      BookCodes(codes_at + lane, signs, codes);
#else
      GLOBAL const uint* words = (GLOBAL const uint*)codes_at + lane;
      for (uint chunk = 0; chunk < 8; ++chunk) codes[chunk] = Chunk(words, chunk);
#endif
#if defined(SCALES_NVFP4)  // has no d
#elif D_BYTES == 0
      uint half_of_d = 0;
      for (uint i = 0; i < 4; ++i) {
        half_of_d |= (uint)(record[SCALES_AT + (2 * i + 1) * LANES + lane] >> 4) << (4 * i);
      }
      const float d = HalfToFloat((ushort)half_of_d);
#elif D_BYTES == 1
      const uint e = record[lane];
      const float d = FLOAT_OF(e < 2 ? 0x00200000u << e : (e - 1u) << 23);
#else
      const float d = HalfToFloat(((GLOBAL const ushort*)record)[lane]);
#endif
#if HAS_MIN
      const float m = HalfToFloat(((GLOBAL const ushort*)(record + MIN_AT))[lane]);
#endif
      float scales[RUNS];
#if HAS_MIN
      float mins[RUNS];
#endif
      for (uint run = 0; run < RUNS; ++run) {
#ifdef BOOK
        scales[run] = d * D_UNIT * (float)BookScale(record + SCALES_AT + lane, codes_at + lane,
                                                    signs, in_record * RUNS + run);
#elif defined(SCALES_NVFP4)
        scales[run] =
            HalvedE4M3(record[SCALES_AT + (in_record * RUNS + run) * LANES + lane]);
#elif SCALE_BYTES > 0
        GLOBAL const uchar* packed = record + SCALES_AT + lane;
        scales[run] = d * (float)ScaleOfRun(packed, in_record * RUNS + run);
#if HAS_MIN
        mins[run] = -m * (float)MinOfRun(packed, in_record * RUNS + run);
#endif
#else
        scales[run] = d;
#if HAS_MIN
        mins[run] = m;
#endif
#endif
      }
      for (uint i = 0; i < count; ++i) {
        const uint row = x_rows ? x_rows[first + i] : first + i;
        GLOBAL const uint* of_x = x + ((ulong)row * groups + group) * X_WORDS;
        float term = 0.0f;
        for (uint run = 0; run < RUNS; ++run) {
          int dot = 0;
          for (uint chunk = run * (8 / RUNS); chunk < (run + 1) * (8 / RUNS); ++chunk) {
            dot += DOT4(codes[chunk], of_x[X_CODES + chunk]);
          }
          dot -= OFFSET * (int)of_x[RUNS == 1 ? X_SUM : X_HALF_SUMS + run];
          term = run == 0 ? (float)dot * scales[0] : FMA((float)dot, scales[run], term);
        }
#if HAS_MIN
        for (uint run = 0; run < RUNS; ++run) {
          const int codes_of_x = (int)of_x[RUNS == 1 ? X_SUM : X_HALF_SUMS + run];
          term = FMA((float)codes_of_x, mins[run], term);
        }
#endif
        terms[i][slice][lane] = term;
      }
    }
    WAIT_FOR_GROUP();
    if (slice < count) {
      const uint end = groups - begin < SLICES ? groups - begin : SLICES;
      for (uint k = 0; k < end; ++k) {
        const float scale_of_x = FLOAT_OF(my_x[(begin + k) * X_WORDS + X_SCALE]);
        sum = FMA(terms[slice][k][lane], scale_of_x, sum);
      }
    }
    WAIT_FOR_GROUP();
  }
  const uint row = panel * LANES + lane;
  if (slice < count && row < rows) {
    out[(ulong)mine * rows + row] = bias ? sum + bias[bias_at + row] : sum;
  }
}

#elif defined(PRODUCT_NUMBERS)

DEVICE float NumberAt(GLOBAL const uchar* panel, ulong i) {
#if defined(NUMBERS_F32)
  return ((GLOBAL const float*)panel)[i];
#elif defined(NUMBERS_F16)
  return HalfToFloat(((GLOBAL const ushort*)panel)[i]);
#else
  return FLOAT_OF((uint)((GLOBAL const ushort*)panel)[i] << 16);
#endif
}

// The same for weights that are plain numbers, with x as floats: an item has a weight row and a row
// of x, because the sum rounds after each column.
KERNEL ITEMS_ARE(LANES * TILE)
void Product(GLOBAL const uchar* weights, ulong weights_at, uint rows, uint cols,
             GLOBAL const float* x, GLOBAL const uint* x_rows, uint x_count,
             GLOBAL const float* bias, ulong bias_at, GLOBAL float* out) {
  const uint lane = ITEM % LANES;
  const uint i = GROUP(1) * TILE + ITEM / LANES;
  const uint row = GROUP(0) * LANES + lane;
  if (i >= x_count || row >= rows) return;
  GLOBAL const uchar* panel =
      weights + weights_at + (ulong)GROUP(0) * cols * LANES * NUMBER_BYTES;
  GLOBAL const float* of_x = x + (ulong)(x_rows ? x_rows[i] : i) * cols;
  float sum = 0.0f;
  for (uint col = 0; col < cols; ++col) {
    sum = FMA(NumberAt(panel, (ulong)col * LANES + lane), of_x[col], sum);
  }
  out[(ulong)i * rows + row] = bias ? sum + bias[bias_at + row] : sum;
}

#else

// The 8-bit form of `count` groups of 32 floats, which lie one after the other: a group an item.
KERNEL ITEMS_ARE(GROUP_ITEMS)
void Quantize(GLOBAL const float* values, uint count, GLOBAL uint* groups) {
  const uint group = GROUP(0) * GROUP_ITEMS + ITEM;
  if (group >= count) return;
  GLOBAL const float* x = values + (ulong)group * GROUP_COLS;
  GLOBAL uint* to = groups + (ulong)group * X_WORDS;
  float most = 0.0f;
  int finite = 1;
  for (uint i = 0; i < GROUP_COLS; ++i) {
    const float magnitude = FLOAT_OF(BITS_OF(x[i]) & 0x7fffffffu);
    if (BITS_OF(magnitude) >= 0x7f800000u) finite = 0;
    if (magnitude > most) most = magnitude;
  }
  if (!finite || most < 0x1p-100f) {
    to[X_SCALE] = finite ? 0u : 0x7fc00000u;
    for (uint i = X_SUM; i < X_WORDS; ++i) to[i] = 0;
    return;
  }
  const float inverse = 127.0f / most;
  int half_sum[2] = {0, 0};
  for (uint word = 0; word < GROUP_COLS / 4; ++word) {
    uint codes = 0;
    for (uint i = 0; i < 4; ++i) {
      const int code = (int)NEAREST(x[word * 4 + i] * inverse);
      half_sum[word / 4] += code;
      codes |= ((uint)code & 255u) << (8 * i);
    }
    to[X_CODES + word] = codes;
  }
  to[X_SCALE] = BITS_OF(most / 127.0f);
  to[X_SUM] = (uint)(half_sum[0] + half_sum[1]);
  to[X_HALF_SUMS] = (uint)half_sum[0];
  to[X_HALF_SUMS + 1] = (uint)half_sum[1];
}

DEVICE float Exp(float x) {
  if (x != x) return x;
  if (x < EXP_LOWEST) return 0.0f;
  if (x > EXP_HIGHEST) x = EXP_HIGHEST;
  const float shifted = FMA(x, EXP_LOG2E, EXP_ROUND);
  const float n = shifted - EXP_ROUND;
  float r = FMA(n, -EXP_LN2_HIGH, x);
  r = FMA(n, -EXP_LN2_LOW, r);
  float p = FMA(EXP_C6, r, EXP_C5);
  p = FMA(p, r, EXP_C4);
  p = FMA(p, r, EXP_C3);
  p = FMA(p, r, EXP_C2);
  p = FMA(p, r, 1.0f);
  p = FMA(p, r, 1.0f);
  return FLOAT_OF(BITS_OF(p) + (BITS_OF(shifted) << 23));
}

DEVICE float Sigmoid(float x) { return 1.0f / (1.0f + Exp(-x)); }

DEVICE float Gate(uint form, float gate, float up) {
  if (form == FORM_SILU) return gate * Sigmoid(gate) * up;
  if (form == FORM_GELU) {
    const float inner = GELU_SLOPE * (gate * (GELU_CUBE * (gate * gate) + 1.0f));
    return gate * Sigmoid(inner) * up;
  }
  if (form == FORM_RELU || form == FORM_SQUARED_RELU) {
    const float x = gate < 0.0f ? 0.0f : gate;
    return form == FORM_RELU ? x : x * x;
  }
  const float x = gate > GATE_LIMIT ? GATE_LIMIT : gate;
  float y = up > GATE_LIMIT ? GATE_LIMIT : up;
  y = y < -GATE_LIMIT ? -GATE_LIMIT : y;
  return x * Sigmoid(GATE_SLOPE * x) * (y + 1.0f);
}

// gates[i] = Gate(form, gates[i], ups[i]).
KERNEL ITEMS_ARE(GROUP_ITEMS)
void Combine(uint form, GLOBAL float* gates, GLOBAL const float* ups, uint count) {
  const uint i = GROUP(0) * GROUP_ITEMS + ITEM;
  if (i < count) gates[i] = Gate(form, gates[i], ups[i]);
}

#endif
